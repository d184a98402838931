internal import Codecs

extension PolicyDocument {
  /// Reads a file and checks all that can be checked without others.
  ///
  /// - Returns: The document, when it is one at all, and every mistake; one with errors is good for
  ///   nothing but to find more of them.
  public static func read(_ source: PolicySource) -> (document: PolicyDocument?, [PolicyIssue]) {
    let start = PolicyLocation(file: source.name, line: 1, column: 1)
    guard source.bytes.count <= PolicySource.maximumSize else {
      let issue = PolicyIssue(
        .unreadable, at: start, "the file is larger than a policy may be",
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
    check.check(node, .record(Grammar.file), "the file")
    guard node.mapping != nil else { return (nil, check.issues) }
    var reader = DocumentReader(file: source.name)
    let document = reader.document(node, source)
    let issues = check.issues + reader.issues
    return (document, issues.sorted { $0.location < $1.location })
  }
}
