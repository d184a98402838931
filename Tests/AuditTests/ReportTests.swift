import Codecs
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Audit

/// Reports, baselines and SARIF logs.
struct ReportTests {
  private static func finding(
    _ path: ByteString = "apps/a/data/x", rule: AuditRule = .userDataMarked, key: String = "",
    real: ByteString = "/device/Containers/1/x", isDirectory: Bool = false
  ) -> AuditFinding {
    AuditFinding(
      rule: rule, path: path, realPath: real, isDirectory: isDirectory, owner: "a", files: 1,
      bytes: 5, detail: "by the attribute", key: key, command: "sandboxctl include x")
  }

  private static func report(
    _ findings: [AuditFinding], excluding baseline: AuditBaseline? = nil
  ) -> AuditReport {
    var collector = FindingCollector(baseline: baseline)
    for finding in findings { collector.add(finding) }
    let device = Device(
      root: "/device", layout: .coreSimulator, identity: .named("d"), apps: [], containers: [],
      findings: [])
    return AuditReport(device, collector, unreadable: [], skipped: [])
  }

  private static func baseline(_ text: String) throws -> AuditBaseline {
    try AuditBaseline(reading: Array(text.utf8), as: "known.json")
  }

  // MARK: Fingerprints and order

  @Test func fingerprintDependsOnRulePathAndKeyOnly() {
    let one = Self.finding()
    #expect(one.fingerprint.description.count == 32)
    #expect(Fingerprint(one.fingerprint.description) == one.fingerprint)
    #expect(one.fingerprint == Self.finding(real: "/other/x", isDirectory: true).fingerprint)
    let others = [
      Self.finding("apps/a/data/y"), Self.finding(rule: .churn), Self.finding(key: "k"),
      // The end of one part must not count as the beginning of the next.
      Self.finding("apps/a/data/xk"),
    ]
    #expect(Set((others + [one]).map(\.fingerprint)).count == 5)
  }

  @Test func findingsAreSortedByRuleAndPath() {
    let report = Self.report([
      Self.finding("b"), Self.finding("a", key: "2"), Self.finding("a", key: "1"),
      Self.finding("z", rule: .recreatableData),
    ])
    #expect(report.findings.map { "\($0.path)\($0.key)" } == ["z", "a1", "a2", "b"])
  }

  @Test func findingsBeyondTheLimitAreCounted() {
    let report = Self.report(
      (0..<(FindingCollector.limit + 3)).map { Self.finding(ByteString("\($0)")) })
    #expect(report.findings.count == FindingCollector.limit)
    let omission = report.omitted["user-data-marked"]
    #expect(omission?.count == 3 && omission?.bytes == 15 && omission?.fingerprints.count == 3)
    #expect(report.count(of: .warning) == FindingCollector.limit + 3)
    #expect(report.worst == .warning && report.count(of: .error) == 0)
    #expect(Self.report([]).worst == nil)
  }

  // MARK: Baselines

  @Test func knownFindingsAreNotReported() throws {
    let (one, other) = (Self.finding(), Self.finding("apps/a/data/y"))
    let report = { Self.report([one, other], excluding: $0) }
    let line = #"{"rule":"user-data-marked","fingerprint":"\#(one.fingerprint)"}"#
    for text in [line, line + "\n" + #"{"summary":{}}"# + "\n\n", "\n \n" + line] {
      let rest = report(try Self.baseline(text))
      #expect(rest.findings == [other] && rest.known == 1)
    }
    let log = SarifLog(Self.report([one]), version: "1.2.3").json
    for text in [log.compact, log.pretty] {
      #expect(report(try Self.baseline(text)).findings == [other])
    }
    // The output of an audit without findings.
    let none = report(try Self.baseline(#"{"summary":{"error":0}}"#))
    #expect(none.findings == [one, other] && none.known == 0)
  }

  /// A baseline also contains the findings that its output does not list, and new ones are listed
  /// even if the known ones exceed the limit.
  @Test func aBaselineHasTheFindingsBeyondTheLimit() throws {
    let all = (0..<(FindingCollector.limit + 3)).map { Self.finding(ByteString("\($0)")) }
    let log = SarifLog(Self.report(all), version: "1.2.3").json
    let (first, new) = (Self.finding("first"), Self.finding("new"))
    for text in [log.compact, log.pretty] {
      let report = Self.report([first] + all + [new], excluding: try Self.baseline(text))
      #expect(report.findings == [first, new] && report.omitted.isEmpty)
      #expect(report.known == all.count && report.worst == .warning)
    }
    let rest = Self.report(all, excluding: try Self.baseline(log.compact))
    #expect(rest.findings.isEmpty && rest.worst == nil && !rest.isIncompleteAsBaseline)
  }

  /// The reason is the size, not that the log is not in JSON Lines format.
  @Test func aLogWithTooManyValuesIsRefusedWithTheReason() throws {
    let many = #"{"runs":["# + String(repeating: "0,", count: 1 << 21) + "0]}"
    let error = #expect(throws: OperationError.self) { _ = try Self.baseline(many) }
    #expect(error?.description.contains("values") == true, "\(String(describing: error))")
  }

  @Test(
    arguments: [
      ("", "it is empty"), ("\n \n", "it is empty"),
      ("hello", "line 1 is not a JSON object of an audit"),
      ("{\"summary\":{}}\n[1]", "line 2 is not a JSON object of an audit"),
      (#"{"path":"a"}"#, "line 1 has no fingerprint"),
      (#"{"runs":3}"#, "its 'runs' are not an array"),
      (
        #"{"runs":[{"tool":{"driver":{"name":"other"}}}]}"#,
        "it is a SARIF log without a run of sandboxctl"
      ),
      ("{\"fingerprint\":1}", "line 1 has no fingerprint"),
      (#"{"fingerprint":"12"}"#, "the fingerprint in line 1 is not valid"),
      ("\u{0}\u{1}\u{2}\u{ff}", "line 1 is not a JSON object of an audit"),
    ] as [(String, String)])
  func fileThatIsNotABaselineIsRefused(text: String, reason: String) throws {
    let error = #expect(throws: OperationError.self) { _ = try Self.baseline(text) }
    #expect(error?.description == "cannot use the baseline 'known.json': \(reason)")
    #expect(error?.code == .invalidInput && error?.hint != nil)
  }

  // MARK: SARIF

  private static func log(_ findings: [AuditFinding]) throws -> (run: JSON, results: [JSON]) {
    let log = SarifLog(report(findings), version: "1.2.3").json
    #expect(log["version"]?.string == "2.1.0")
    let run = try #require(log["runs"]?[0])
    return (run, try #require(run["results"]?.array))
  }

  @Test func logDescribesEveryRule() throws {
    let (run, results) = try Self.log([])
    let driver = try #require(run["tool"]?["driver"])
    #expect(driver["name"]?.string == "sandboxctl" && driver["version"]?.string == "1.2.3")
    let rules = try #require(driver["rules"]?.array)
    #expect(rules.map { $0["id"]?.string } == AuditRule.all.map(\.id))
    for (rule, own) in zip(rules, AuditRule.all) {
      #expect(rule["helpUri"]?.string == own.url)
      #expect(rule["defaultConfiguration"]?["level"]?.string == own.level.rawValue)
    }
    // A log without findings has an empty list, which shows that the audit ran.
    #expect(results.isEmpty)
  }

  @Test func resultRefersToItsRule() throws {
    let finding = Self.finding()
    let result = try #require(try Self.log([finding]).results.first)
    let number = try #require(result["ruleIndex"]?.integer)
    #expect(AuditRule.all[Int(number)] == finding.rule)
    #expect(result["ruleId"]?.string == finding.rule.id)
    #expect(
      result["message"]?["text"]?.string
        == "User data is marked as excluded from backups: by the attribute.")
    #expect(
      result["partialFingerprints"]?["sandboxctlFinding/v1"]?.string
        == finding.fingerprint.description)
    #expect(result["properties"]?["command"]?.string == finding.command)
  }

  /// Paths are relative to the device's root, with all special bytes encoded (RFC 3986).
  @Test(
    arguments: [
      ("/device/a b/ü%#?:x", false, "a%20b/%C3%BC%25%23%3F%3Ax", true),
      ("/device/dir", true, "dir/", true), ("/device", true, "file:///device/", false),
      ("/devices/x", false, "file:///devices/x", false),
      ("/elsewhere/[1]", false, "file:///elsewhere/%5B1%5D", false),
    ] as [(ByteString, Bool, String, Bool)])
  func locationIsAURI(
    real: ByteString, isDirectory: Bool, uri: String, isRelative: Bool
  ) throws {
    let (run, results) = try Self.log([Self.finding(real: real, isDirectory: isDirectory)])
    let location = try #require(results.first?["locations"]?[0]?["physicalLocation"])
    #expect(location["artifactLocation"]?["uri"]?.string == uri)
    #expect(
      location["artifactLocation"]?["uriBaseId"]?.string == (isRelative ? "DEVICE" : nil))
    #expect(location["region"]?["startLine"]?.integer == 1)
    #expect(run["originalUriBaseIds"]?["DEVICE"]?["uri"]?.string == "file:///device/")
  }

  @Test func nameThatIsNotUTF8IsEncoded() throws {
    let real = ByteString("/device/".utf8 + [0xff, 0x0a])
    let path = ByteString("apps/a/data/".utf8 + [0xff, 0x0a])
    let result = try #require(try Self.log([Self.finding(path, real: real)]).results.first)
    let location = try #require(result["locations"]?[0])
    #expect(location["physicalLocation"]?["artifactLocation"]?["uri"]?.string == "%FF%0A")
    let name = try #require(location["logicalLocations"]?[0]?["fullyQualifiedName"]?.string)
    #expect(name == path.description)
  }
}
