internal import Codecs

extension PolicyDocument {
  /// Reads a file and performs the checks that need no other files.
  ///
  /// - Returns: The document, if the text is a policy at all, and every mistake. A document with
  ///   errors is usable only to find more mistakes.
  package static func read(_ source: PolicySource) -> (document: PolicyDocument?, [PolicyIssue]) {
    let start = PolicyLocation(file: source.name, line: 1, column: 1)
    guard source.bytes.count <= PolicySource.maximumSize else {
      let issue = PolicyIssue(
        .unreadable, at: start, "the file is too large",
        expected: "a policy of at most \(PolicySource.maximumSize) bytes")
      return (nil, [issue])
    }
    do {
      let node = try YAML.parse(
        source.bytes, limits: YAML.Limits(bytes: PolicySource.maximumSize))
      return read(source, node)
    } catch {
      let place = error.mark.map { PolicyLocation(source.name, $0) } ?? start
      return (nil, [PolicyIssue(.unreadable, at: place, error.reason, expected: "YAML")])
    }
  }

  private static func read(
    _ source: PolicySource, _ node: YAMLNode
  ) -> (document: PolicyDocument?, [PolicyIssue]) {
    var check = GrammarCheck(file: source.name)
    check.check(node, against: .record(Grammar.file), named: "the file")
    guard node.mapping != nil else { return (nil, check.issues) }
    var reader = DocumentReader(file: source.name)
    let document = reader.document(node, source)
    let issues = check.issues + reader.issues
    return (document, issues.sorted { $0.location < $1.location })
  }
}
