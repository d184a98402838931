package import SystemIO

/// The findings of an audit. Their number is bounded: beyond the limit of a rule, further ones are
/// only counted, and their fingerprints are kept for a baseline. Findings in this audit's own
/// baseline do not count.
package struct FindingCollector: Sendable {
  /// The maximum number of findings of one rule. GitHub accepts 25,000 results of all rules (SARIF
  /// support for code scanning, Validating your SARIF file).
  package static let limit = 2000
  /// The maximum number of fingerprints of findings beyond the limit, of all rules.
  package static let fingerprintLimit = 500_000

  package private(set) var findings: [AuditFinding] = []
  /// The findings beyond the limit, by the rule's identifier.
  package private(set) var omitted: [String: Omission] = [:]
  /// The files that a rule needs and that cannot be used, by logical path.
  package private(set) var unusable: [PathRemark] = []
  /// The number of findings that the baseline contains.
  package private(set) var known = 0
  private let baseline: AuditBaseline?
  private var counts: [String: Int] = [:]
  private var fingerprints = 0

  /// The number and the size of findings that are not listed.
  package struct Omission: Sendable, Hashable {
    package var count = 0
    /// In bytes.
    package var bytes: UInt64 = 0
    /// The fingerprints, unless there are more than the limit of all rules.
    package var fingerprints: [Fingerprint] = []

    /// Whether there are findings without a fingerprint, which a baseline lacks.
    package var isIncomplete: Bool { fingerprints.count < count }
  }

  /// Begins an audit.
  ///
  /// - Parameter baseline: The findings that are not recorded.
  init(baseline: AuditBaseline? = nil) { self.baseline = baseline }

  /// Whether further findings of a rule are only counted.
  private func isFull(_ rule: AuditRule) -> Bool { counts[rule.id, default: 0] >= Self.limit }

  mutating func add(_ finding: AuditFinding) {
    if let baseline, baseline.has(finding) {
      known += 1
      return
    }
    if isFull(finding.rule) {
      omitted[finding.rule.id, default: Omission()].count += 1
      omitted[finding.rule.id, default: Omission()].bytes.addClamping(finding.bytes)
      if fingerprints < Self.fingerprintLimit {
        fingerprints += 1
        omitted[finding.rule.id, default: Omission()].fingerprints.append(finding.fingerprint)
      }
      return
    }
    counts[finding.rule.id, default: 0] += 1
    findings.append(finding)
  }

  /// Records a file that could not be examined; further ones beyond the limit are dropped.
  mutating func addUnusable(_ path: ByteString, because reason: String) {
    if unusable.count < Self.limit { unusable.append(PathRemark(path: path, remark: reason)) }
  }
}
