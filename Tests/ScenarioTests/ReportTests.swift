import FoundationXML
import PolicyEngine
import SystemIO
import Testing

@testable import Scenario

/// The reports on scenarios.
struct ReportTests {
  private static let location = PolicyLocation(file: "a<b.yaml", line: 7, column: 3)

  private let report = ScenarioReport(
    results: [
      result(.passed), result(.skipped("no \"steps\" apply\nhere")),
      result(
        .failed([
          ScenarioFailure(
            at: location, expected: "'a' & <b>", found: "a bell \u{7}", paths: ["x\u{1b}y"])
        ])),
      result(.error(ScenarioResult.Problem(at: location, "two\nlines"))),
    ], started: Timestamp(seconds: 0, nanoseconds: 0), seconds: 1)

  private static func result(_ outcome: ScenarioResult.Outcome) -> ScenarioResult {
    ScenarioResult(
      scenario: "name # \"x\"\nsecond", location: location, version: "5.0", outcome: outcome,
      seconds: 0.5)
  }

  @Test func junitIsWellFormedAndCountsAgree() throws {
    let document = try XMLDocument(xmlString: report.junit)
    for path in ["/testsuites", "/testsuites/testsuite"] {
      let node = try #require(try document.nodes(forXPath: path).first as? XMLElement)
      for (name, value) in [
        ("tests", "4"), ("failures", "1"), ("errors", "1"), ("time", "1.000"),
        ("skipped", path.hasSuffix("suite") ? "1" : nil),
      ] {
        #expect(node.attribute(forName: name)?.stringValue == value)
      }
    }
    let cases = try document.nodes(forXPath: "//testcase").compactMap { $0 as? XMLElement }
    #expect(cases.count == 4)
    for element in cases {
      #expect(["classname", "name", "time"].allSatisfy { element.attribute(forName: $0) != nil })
    }
    for name in ["skipped", "failure", "error"] {
      #expect(try document.nodes(forXPath: "//testcase/\(name)").count == 1)
    }
  }

  @Test(arguments: [(0.000_05, "0.000"), (0.0129, "0.012"), (3661.5, "3661.500"), (-1, "0.000")])
  func junitTimesHaveThreeDecimals(_ seconds: Double, _ text: String) {
    let report = ScenarioReport(
      results: [
        ScenarioResult(
          scenario: "x", location: Self.location, version: "now", outcome: .passed,
          seconds: seconds)
      ], started: Timestamp(seconds: 0, nanoseconds: 0), seconds: seconds)
    #expect(report.junit.split(separator: " time=\"\(text)\"").count == 4, "\(report.junit)")
  }

  @Test func tapHasAPlanAndConsecutiveNumbers() {
    let lines = report.tap.split(separator: "\n").map(String.init)
    #expect(lines.prefix(2) == ["TAP version 13", "1..4"])
    let rest = lines.dropFirst(2)
    let tests = rest.filter { !$0.hasPrefix("#") }
    #expect(tests.count == 4)
    for (index, line) in tests.enumerated() {
      let word = index < 2 ? "ok" : "not ok"
      #expect(line.hasPrefix("\(word) \(index + 1) - name \u{FF03} "))
    }
    #expect(tests.dropFirst().first?.contains(" # SKIP ") == true)
  }

  /// A name or a message must not break a line or control the terminal.
  @Test func textIsEscaped() {
    let lines = report.text.split(separator: "\n").map(String.init)
    #expect(lines.count == 7, "\(report.text)")
    #expect(lines.first == "passed  name # \"x\"\\nsecond (5.0)")
    #expect(lines.contains { $0.hasSuffix("found a bell \\x07: 'x\\x1by'") }, "\(report.text)")
    #expect(report.text.utf8.allSatisfy { $0 >= 0x20 || $0 == 0x0a })
  }

  @Test func textNamesTheLine() {
    #expect(report.text.contains("a<b.yaml:7:3: expected 'a' & <b>"))
    #expect(report.text.hasSuffix("4 cases: 1 passed, 1 failed, 1 skipped, 1 with errors\n"))
  }
}
