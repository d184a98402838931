internal import Codecs
package import SystemIO

/// The known findings of an earlier audit, which a later one does not report: the output of
/// `audit --json` or `audit --format sarif`.
package struct AuditBaseline: Sendable {
  /// The maximum size of a baseline in bytes.
  package static let limit = 64 << 20

  private let fingerprints: Set<Fingerprint>

  /// Reads a baseline.
  ///
  /// - Parameter path: The path for the error.
  /// - Throws: `OperationError` if it is not the output of an audit.
  package init(reading bytes: [UInt8], as path: ByteString) throws(OperationError) {
    do throws(Fault) {
      fingerprints = try Self.fingerprints(bytes)
    } catch {
      throw OperationError(
        .failed, code: .invalidInput, "use the baseline", subject: path, reason: error.reason,
        hint: "'sandboxctl audit --json > FILE' writes a baseline with all present findings")
    }
  }

  /// Whether the baseline contains a finding.
  package func has(_ finding: AuditFinding) -> Bool { fingerprints.contains(finding.fingerprint) }

  /// The number of known findings.
  package var count: Int { fingerprints.count }

  /// The reason why bytes are not a baseline.
  private struct Fault: Error { let reason: String }

  private static func fingerprints(_ bytes: [UInt8]) throws(Fault) -> Set<Fingerprint> {
    let limits = JSON.Limits(bytes: limit)
    if bytes.count > limit { throw Fault(reason: "it has more than \(limit >> 20) MiB") }
    let whole: JSON?
    do throws(CodecError) { whole = try JSON(parsing: bytes, limits: limits) } catch {
      // It may be several JSON texts, one a line. A log that exceeds a limit must not be read as
      // lines.
      if error.kind == .limit { throw Fault(reason: error.reason) }
      whole = nil
    }
    if let whole, whole["runs"] != nil { return try ofLog(whole) }
    return try ofLines(bytes, limits)
  }

  /// Returns the fingerprints of the lines of `audit --json`.
  private static func ofLines(
    _ bytes: [UInt8], _ limits: JSON.Limits
  ) throws(Fault) -> Set<Fingerprint> {
    var found: Set<Fingerprint> = []
    var hasLines = false
    for (number, line) in bytes.split(separator: 0x0a).enumerated()
    where line.contains(where: isInk) {
      hasLines = true
      guard let object = try? JSON(parsing: Array(line), limits: limits), object.members != nil
      else { throw Fault(reason: "line \(number + 1) is not a JSON object of an audit") }
      if let text = object["fingerprint"]?.string {
        guard let print = Fingerprint(text) else {
          throw Fault(reason: "the fingerprint in line \(number + 1) is not valid")
        }
        found.insert(print)
      } else if let omissions = object["summary"]?["not_listed"]?.array {
        for omission in omissions { found.formUnion(all(in: omission["fingerprints"])) }
      } else if object["summary"] == nil, object["event"] == nil {
        throw Fault(reason: "line \(number + 1) has no fingerprint")
      }
    }
    if !hasLines { throw Fault(reason: "it is empty") }
    return found
  }

  private static func all(in list: JSON?) -> [Fingerprint] {
    (list?.array ?? []).compactMap { $0.string.flatMap { Fingerprint($0) } }
  }

  private static func isInk(_ byte: UInt8) -> Bool { byte > 0x20 }

  /// Returns the fingerprints of a SARIF log: those of its results, and of its notifications about
  /// findings that are not listed.
  private static func ofLog(_ log: JSON) throws(Fault) -> Set<Fingerprint> {
    guard let runs = log["runs"]?.array else { throw Fault(reason: "its 'runs' are not an array") }
    let own = runs.filter { $0["tool"]?["driver"]?["name"]?.string == SarifLog.program }
    if own.isEmpty { throw Fault(reason: "it is a SARIF log without a run of sandboxctl") }
    var found: Set<Fingerprint> = []
    for result in own.flatMap({ $0["results"]?.array ?? [] }) {
      let text = result["partialFingerprints"]?[AuditFinding.fingerprintName]?.string
      if let print = text.flatMap({ Fingerprint($0) }) { found.insert(print) }
    }
    for invocation in own.flatMap({ $0["invocations"]?.array ?? [] }) {
      for notification in invocation["toolExecutionNotifications"]?.array ?? [] {
        found.formUnion(all(in: notification["properties"]?[SarifLog.fingerprints]))
      }
    }
    return found
  }
}
