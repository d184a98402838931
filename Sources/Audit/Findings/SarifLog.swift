package import Codecs
internal import SandboxModel
internal import SystemIO

/// The findings of an audit as a SARIF log, version 2.1.0 (OASIS Standard, 27 March 2020), with the
/// additional members that GitHub's code scanning requires: a region for each location and
/// fingerprints.
package struct SarifLog {
  /// The name of the tool in the log.
  static let program = "sandboxctl"
  /// The base of relative paths: the device's root.
  private static let base = "DEVICE"
  /// The property of a notification with the fingerprints of findings that are not listed.
  static let fingerprints = "sandboxctlFingerprints"

  private let report: AuditReport
  private let version: String

  /// Creates a log of a report.
  ///
  /// - Parameter version: The version of the program.
  package init(_ report: AuditReport, version: String) {
    self.report = report
    self.version = version
  }

  /// The complete log.
  package var json: JSON {
    [
      "$schema":
        "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
      "version": "2.1.0", "runs": .array([run]),
    ]
  }

  private var run: JSON {
    let root = Self.uri(report.device.root)
    return [
      "tool": ["driver": driver],
      "automationDetails": ["id": "sandboxctl-audit/"],
      "invocations": .array([invocation]),
      "originalUriBaseIds": .object([
        JSON.Member(
          Self.base, ["uri": .string("file://" + (root.hasSuffix("/") ? root : root + "/"))])
      ]),
      "results": .array(report.findings.map { result($0) }),
    ]
  }

  private var driver: JSON {
    [
      "name": .string(Self.program), "version": .string(version),
      "semanticVersion": .string(version), "rules": .array(AuditRule.all.map { Self.rule($0) }),
    ]
  }

  private static func rule(_ rule: AuditRule) -> JSON {
    [
      "id": .string(rule.id), "name": .string(rule.name),
      "shortDescription": text(sentence(rule.title)),
      "fullDescription": text(rule.advice),
      "help": text("\(rule.advice)\n\nSource: \(rule.source)."),
      "helpUri": .string(rule.url),
      "defaultConfiguration": ["level": .string(rule.level.rawValue)],
      "properties": ["tags": ["app-data"]],
    ]
  }

  /// The run, with a notification for each file that could not be examined and each omission.
  private var invocation: JSON {
    let unusable = report.unusable.map {
      Self.notification("not examined: \($0.path): \($0.remark)", level: "warning")
    }
    let omitted = report.omitted.sorted { $0.key < $1.key }.map { rule, omission in
      Self.notification(
        "\(omission.count) further findings of \(rule) are not listed", level: "warning",
        properties: [
          Self.fingerprints: .array(omission.fingerprints.map { .string($0.description) })
        ])
    }
    let skipped = report.skipped.map {
      Self.notification("the rule \($0.rule.id) was not applied: \($0.reason)", level: "note")
    }
    return [
      "executionSuccessful": .bool(report.unusable.isEmpty),
      "toolExecutionNotifications": .array(unusable + omitted + skipped),
    ]
  }

  private static func notification(
    _ message: String, level: String, properties: JSON? = nil
  ) -> JSON {
    let members = [
      JSON.Member("level", .string(level)), JSON.Member("message", text(message)),
    ]
    return .object(members + (properties.map { [JSON.Member("properties", $0)] } ?? []))
  }

  private func result(_ finding: AuditFinding) -> JSON {
    [
      "ruleId": .string(finding.rule.id),
      "ruleIndex": .integer(Int64(AuditRule.all.firstIndex(of: finding.rule) ?? -1)),
      "level": .string(finding.rule.level.rawValue),
      "message": Self.text(Self.sentence(finding.message)),
      "locations": .array([location(finding)]),
      "partialFingerprints": .object([
        JSON.Member(AuditFinding.fingerprintName, .string(finding.fingerprint.description))
      ]),
      "properties": [
        "files": .integer(Int64(finding.files)),
        "bytes": .integer(Int64(clamping: finding.bytes)),
        "command": .string(finding.command),
      ],
    ]
  }

  private func location(_ finding: AuditFinding) -> JSON {
    [
      "physicalLocation": [
        "artifactLocation": artifact(finding),
        // GitHub does not show a result without a line.
        "region": ["startLine": 1],
      ],
      "logicalLocations": .array([
        [
          "fullyQualifiedName": .string(finding.path.utf8 ?? finding.path.description),
          "kind": "resource",
        ]
      ]),
    ]
  }

  /// The location of the file: relative to the device's root, or absolute if it is not below it.
  private func artifact(_ finding: AuditFinding) -> JSON {
    let slash = finding.isDirectory ? "/" : ""
    let root = report.device.root
    guard finding.realPath.isWithin(root), finding.realPath != root else {
      return ["uri": .string("file://" + Self.uri(finding.realPath) + slash)]
    }
    let relative = finding.realPath.relative(to: root)
    return [
      "uri": .string(Self.uri(relative) + slash), "uriBaseId": .string(Self.base),
    ]
  }

  /// Returns a path with all but unreserved characters and slashes encoded.
  private static func uri(_ path: ByteString) -> String {
    PercentEncoding.encode(path.bytes, keepsSlashes: true)
  }

  private static func text(_ text: String) -> JSON { ["text": .string(text)] }

  /// Returns a clause as a sentence, as SARIF asks for messages (section 3.11.1).
  private static func sentence(_ clause: String) -> String {
    clause.prefix(1).uppercased() + clause.dropFirst() + "."
  }
}
