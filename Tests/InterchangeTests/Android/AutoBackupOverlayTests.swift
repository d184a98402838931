import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// The rules of Auto Backup as an overlay of policies.
struct AutoBackupOverlayTests {
  /// Returns the patterns of the rules that exclude a path, according to the overlay for an XML
  /// file.
  private func patterns(excluding path: String) throws -> [String] {
    let directory = try TemporaryDirectory("overlay")
    try directory.write(
      #"<full-backup-content><exclude domain="file" path="\#(path)"/></full-backup-content>"#,
      at: "rules.xml")
    var rules = AutoBackupRuleSet()
    try rules.add(directory.path("rules.xml"))
    let overlay = try YAML.parse(Array(rules.overlay(of: "rules.xml").utf8))
    return (overlay["rules"]?.sequence ?? [])
      .filter { $0["id"]?.text?.hasPrefix("exclude-") == true }
      .compactMap { $0["match"]?.text }
  }

  /// The path of an app's file matches only itself, even if its characters have a meaning in YAML
  /// or in a pattern.
  @Test(arguments: [
    ("a b", "files/a b/**"), ("a: #b", "files/a: #b/**"), ("&quot;", "files/\"/**"),
    ("a*[b]", "files/a\\*\\[b\\]/**"), ("a&#x2028;b", "files/a\u{2028}b/**"),
    ("a&#x2029;", "files/a\u{2029}/**"), ("&#xfeff;a", "files/\u{feff}a/**"),
    ("a&#x85;b", "files/a\u{85}b/**"), ("caf\u{e9}", "files/caf\u{e9}/**"),
  ])
  func aPathMatchesOnlyItself(path: String, pattern: String) throws {
    let found = try patterns(excluding: path)
    #expect(found.map { Array($0.utf8) } == [Array(pattern.utf8)], "\(found)")
  }
}
