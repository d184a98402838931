import Foundation
import TestSupport
import Testing

@testable import Audit

/// The table of rules, and its description in docs/audit.md.
struct RuleTableTests {
  @Test func everyRuleIsNamedOnce() {
    let ids = AuditRule.all.map(\.id)
    #expect(Set(ids).count == ids.count)
    #expect(ids.count == 18)
    for rule in AuditRule.all {
      #expect(AuditRule.named(rule.id) == rule)
      #expect(rule.id.allSatisfy { $0.isLowercase || $0 == "-" }, "\(rule.id)")
      #expect(rule.url.hasPrefix("https://"), "\(rule.id)")
      #expect(!rule.title.hasSuffix(".") && rule.advice.hasSuffix("."), "\(rule.id)")
    }
    #expect(AuditRule.named("no-such-rule") == nil)
  }

  @Test func namesInSarifHaveCapitals() {
    #expect(AuditRule.userDataInCache.name == "UserDataInCache")
    #expect(AuditRule.churn.name == "Churn")
  }

  @Test func levelsAreOrdered() {
    #expect(AuditLevel.note < .warning && AuditLevel.warning < .error)
    #expect(AuditLevel.allCases.sorted() == [.note, .warning, .error])
  }

  /// The page has a section for each rule, with its level, its source and its address.
  @Test func pageDescribesEveryRule() throws {
    let page = try String(
      contentsOf: Shared.packageRoot.appendingPathComponent("docs/audit.md"), encoding: .utf8)
    let sections = page.components(separatedBy: "\n### ").dropFirst()
    let names = sections.map { $0.prefix { $0 != "\n" } }
    #expect(Set(names.map { "\($0)" }) == Set(AuditRule.all.map { "`\($0.id)`" }))
    for rule in AuditRule.all {
      let section = try #require(sections.first { $0.hasPrefix("`\(rule.id)`\n") })
      #expect(section.contains("\n**\(rule.level.rawValue)**"), "\(rule.id)")
      // Lines of the page wrap.
      let text = section.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(text.contains("[\(rule.source)](\(rule.url))"), "\(rule.id)")
    }
  }
}
