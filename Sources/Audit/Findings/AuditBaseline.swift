internal import Codecs
package import SystemIO

/// The known findings of an earlier audit, which a later one does not report: the output of
/// `audit --json` or `audit --format sarif`.
package struct AuditBaseline: Sendable {
  /// The maximum size of a baseline in bytes.
  package static let limit = 64 << 20

  private let fingerprints: Set<String>

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

  private static func fingerprints(_ bytes: [UInt8]) throws(Fault) -> Set<String> {
    let limits = JSON.Limits(bytes: limit)
    if let whole = try? JSON(parsing: bytes, limits: limits), whole["runs"] != nil {
      return try ofLog(whole)
    }
    var found: Set<String> = []
    var hasLines = false
    for (number, line) in bytes.split(separator: 0x0a).enumerated()
    where line.contains(where: isInk) {
      hasLines = true
      guard let object = try? JSON(parsing: Array(line), limits: limits), object.members != nil
      else { throw Fault(reason: "line \(number + 1) is not a JSON object of an audit") }
      if let print = object["fingerprint"]?.string {
        found.insert(print)
      } else if object["summary"] == nil, object["event"] == nil {
        throw Fault(reason: "line \(number + 1) has no fingerprint")
      }
    }
    if !hasLines { throw Fault(reason: "it is empty") }
    return found
  }

  private static func isInk(_ byte: UInt8) -> Bool { byte > 0x20 }

  /// Returns the fingerprints of a SARIF log.
  private static func ofLog(_ log: JSON) throws(Fault) -> Set<String> {
    guard let runs = log["runs"]?.array else { throw Fault(reason: "its 'runs' are not an array") }
    let own = runs.filter { $0["tool"]?["driver"]?["name"]?.string == SarifLog.program }
    if own.isEmpty { throw Fault(reason: "it is a SARIF log without a run of sandboxctl") }
    let results = own.flatMap { $0["results"]?.array ?? [] }
    return Set(
      results.compactMap {
        $0["partialFingerprints"]?[AuditFinding.fingerprintName]?.string
      })
  }
}
