package import SandboxModel
package import SystemIO

/// The result of an audit.
package struct AuditReport: Sendable {
  package let device: Device
  /// The findings that are not in the baseline, in the order of the rules, then of their paths.
  package let findings: [AuditFinding]
  /// The findings beyond the limit of a rule, by the rule's identifier.
  package let omitted: [String: FindingCollector.Omission]
  /// The files that a rule needs and that cannot be used.
  package let unusable: [PathRemark]
  /// The rules that were not applied, with the reason.
  package let skipped: [SkippedRule]
  /// The number of findings that the baseline contains.
  package let known: Int

  /// A rule that was not applied.
  package struct SkippedRule: Sendable, Hashable {
    package let rule: AuditRule
    /// A clause: "it needs 4 snapshots of the device".
    package let reason: String
  }

  init(
    _ device: Device, _ collector: FindingCollector, unreadable: [PathRemark],
    skipped: [SkippedRule]
  ) {
    let order = Dictionary(
      uniqueKeysWithValues: AuditRule.all.enumerated().map { ($1.id, $0) })
    self.device = device
    findings = collector.findings.sorted {
      (order[$0.rule.id] ?? 0, $0.path, $0.key) < (order[$1.rule.id] ?? 0, $1.path, $1.key)
    }
    omitted = collector.omitted
    known = collector.known
    unusable = unreadable + collector.unusable
    self.skipped = skipped
  }

  /// Whether a baseline of this report lacks findings because there are too many.
  package var isIncompleteAsBaseline: Bool { omitted.values.contains(where: \.isIncomplete) }

  /// Returns the number of findings of a level.
  package func count(of level: AuditLevel) -> Int {
    let omitted = omitted.reduce(0) { sum, element in
      AuditRule.named(element.key)?.level == level ? sum + element.value.count : sum
    }
    return omitted + findings.reduce(0) { $0 + ($1.rule.level == level ? 1 : 0) }
  }

  /// The most severe level of a finding, or nil if there are none.
  package var worst: AuditLevel? { AuditLevel.allCases.last { count(of: $0) > 0 } }
}
