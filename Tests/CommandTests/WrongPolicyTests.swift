import SystemIO
import TestSupport
import Testing

/// Every mistake that a policy can contain: lint reports it with file, line, column and the
/// expected value and exits with status 5, and no command runs with the policy.
struct WrongPolicyTests {
  /// A mistake: its name, an overlay with `¶` at the reported position, and the expected value.
  struct Mistake: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let text: String
    let location: String
    let expected: String

    init(_ what: String, _ marked: String, expects expected: String) {
      let parts = marked.split(separator: "¶", maxSplits: 1, omittingEmptySubsequences: false)
      let lines = parts[0].split(separator: "\n", omittingEmptySubsequences: false)
      testDescription = what
      text = parts.joined() + "\n"
      location = "\(lines.count):\((lines.last?.count ?? 0) + 1)"
      self.expected = expected
    }
  }

  private static let head = "overlay: [coresimulator]\nschema: 1\n"
  private static let rules = head + "rules:\n  - "

  static let mistakes = [
    Mistake(
      "an unknown key", rules + "{id: a, match: tmp/**, ¶clas: cache}", expects: "'class'"),
    Mistake(
      "an unknown value", rules + "{id: a, match: tmp/**, class: ¶treasure}", expects: "user-data"),
    Mistake(
      "an invalid pattern", rules + "{id: a, match: tmp/¶/x, class: cache}",
      expects: "one slash"),
    Mistake(
      "a first component that does not exist in the layout",
      rules + "{id: a, match: ¶Documants/**, class: cache}", expects: "Documents, Library, tmp"),
    Mistake(
      "a rule that a later one always overrides",
      rules + "¶{id: a, match: tmp/x/**, class: cache}\n"
        + "  - {id: b, match: tmp/**, class: temporary}", expects: ""),
    Mistake(
      "an id twice in a file",
      rules + "{id: a, match: tmp/x, class: cache}\n"
        + "  - {id: ¶a, match: tmp/y, class: cache}", expects: ""),
    Mistake(
      "older-than on a backup rule",
      rules + "{id: a, match: tmp/**, backup: never, when: {¶older-than: 30d}}", expects: "purge"),
    Mistake(
      "newer-than on a backup rule",
      rules + "{id: a, match: tmp/**, backup: never, when: {¶newer-than: 30d}}", expects: "purge"),
    Mistake(
      "user-data that is purgeable",
      rules + "¶{id: a, match: Documents/x/**, purge: anytime}", expects: "allow-loss"),
    Mistake(
      "an inbox that is discarded",
      rules + "¶{id: a, match: Documents/Inbox/**, class: inbox, update: discard}",
      expects: "allow-loss"),
    Mistake(
      "unknown data that is purgeable",
      rules + "¶{id: a, match: SystemData/x/**, class: unknown, purge: anytime}",
      expects: "allow-loss"),
    Mistake(
      "an example that fails",
      head + "examples:\n  - {in: data, path: tmp/x, class: ¶user-data}", expects: "user-data"),
  ]

  @Test(arguments: mistakes)
  func mistakeIsReportedAndNothingRuns(_ mistake: Mistake) throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    try cli.directory.write(mistake.text, at: "site.yaml")
    let lint = try cli.run("policy lint site.yaml")
    #expect(lint.code == 5, "\(lint.errors)")
    let named = lint.output.split(separator: "\n")
    #expect(named.count == 1, "\(lint.output)")
    #expect(
      named.first?.hasPrefix("site.yaml:\(mistake.location): error: ") == true, "\(lint.output)")
    #expect(lint.output.contains("; expected "), "\(lint.output)")
    #expect(lint.output.contains(mistake.expected), "\(lint.output)")
    let classify = try cli.run("classify --root device --policy site.yaml")
    #expect(classify.code == 1)
    #expect(classify.output.isEmpty)
    #expect(classify.errors.contains("site.yaml:\(mistake.location): "), "\(classify.errors)")
    #expect(classify.errors.contains("sandboxctl: hint: "), "\(classify.errors)")
  }

  @Test func cycleOfExtendsIsNamedWithItsPath() throws {
    let cli = try CommandLine()
    for (name, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
      try cli.directory.write(
        "policy: \(name)\nschema: 1\nlayout: folder\nextends: [\(next)]\n",
        at: ByteString("home/.config/sandboxctl/policies/\(name).yaml"))
    }
    let lint = try cli.run("policy lint a")
    #expect(lint.code == 5, "\(lint.errors)")
    #expect(lint.output.contains("policies/c.yaml:4:11: error: "), "\(lint.output)")
    #expect(lint.output.contains("a extends b extends c extends a"), "\(lint.output)")
    try cli.directory.write("x", at: "tree/file")
    let classify = try cli.run("classify --layout folder --root tree --policy a")
    #expect(classify.code == 1)
    #expect(classify.output.isEmpty)
    #expect(classify.errors.contains(".yaml:4:11: "), "\(classify.errors)")
  }
}
