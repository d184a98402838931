import Testing

@testable import PolicyEngine

/// A text with `
///
/// ` before the expected position of an issue.
struct MarkedText {
  let text: String
  let line: Int
  let column: Int

  init(_ marked: String) {
    let parts = marked.split(separator: "¶", maxSplits: 1, omittingEmptySubsequences: false)
    let before = parts[0]
    text = parts.joined()
    line = before.count { $0 == "\n" } + 1
    column = (before.split(separator: "\n", omittingEmptySubsequences: false).last?.count ?? 0) + 1
  }
}

/// Expects lint to report an issue of this kind at the marked position, or at the given one, with
/// these parts of its problem and expected text, and to report nothing else.
func expectIssue(
  _ marked: String, _ kind: PolicyIssue.Kind, problem: String, expected: String,
  severity: PolicyIssue.Severity = .error, at location: PolicyLocation? = nil,
  with others: KeyValuePairs<String, String> = [:],
  sourceLocation: Testing.SourceLocation = #_sourceLocation
) {
  let text = MarkedText(marked)
  var sources = [PolicySource(name: "test.yaml", text: text.text, origin: .user)]
  sources += others.map { PolicySource(name: $0.key, text: $0.value, origin: .builtin) }
  let issues = PolicyLibrary(sources).lint("test.yaml")
  #expect(issues.count == 1, "\(issues)", sourceLocation: sourceLocation)
  guard let issue = issues.first else { return }
  #expect(issue.kind == kind, sourceLocation: sourceLocation)
  #expect(issue.severity == severity, sourceLocation: sourceLocation)
  #expect(
    issue.location
      == location ?? PolicyLocation(file: "test.yaml", line: text.line, column: text.column),
    "\(issue)", sourceLocation: sourceLocation)
  #expect(issue.problem.contains(problem), "\(issue)", sourceLocation: sourceLocation)
  #expect(issue.expected.contains(expected), "\(issue)", sourceLocation: sourceLocation)
}

/// Returns a policy with these rules, each on its own line.
func policy(_ rules: String..., head: String = "") -> String {
  "policy: test\nschema: 1\n\(head)rules:\n" + rules.map { "  - \($0)\n" }.joined()
}
