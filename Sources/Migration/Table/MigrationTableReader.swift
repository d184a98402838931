internal import Codecs
package import PolicyEngine
internal import SystemIO

extension MigrationTable {
  /// Reads a file and performs the checks that need no other files.
  ///
  /// - Returns: The table, if the text is a migration table at all, and every mistake, ordered by
  ///   position. A table with errors is usable only to find more mistakes.
  package static func read(
    _ source: PolicySource
  ) -> (table: MigrationTable?, issues: [PolicyIssue]) {
    let (node, issues) = source.parse(
      as: "a migration table",
      limits: YAML.Limits(bytes: maximumSize, depth: 16, nodes: 20_000))
    guard let node else { return (nil, issues) }
    return read(source, node)
  }

  /// The maximum size of a table, in bytes.
  package static let maximumSize = 1 << 20

  /// Whether a text has the key `migration` in its first lines, so that it is a table rather than a
  /// policy.
  package static func isTable(_ source: PolicySource) -> Bool {
    source.bytes.count <= maximumSize
      && source.bytes.split(separator: UInt8(ascii: "\n")).contains {
        $0.starts(with: "migration:".utf8)
      }
  }

  private static func read(
    _ source: PolicySource, _ node: YAMLNode
  ) -> (table: MigrationTable?, issues: [PolicyIssue]) {
    var check = GrammarCheck(file: source.name)
    check.check(node, against: .record(MigrationGrammar.file), named: "the file")
    guard node.mapping != nil, let name = node["migration"]?.text, !name.isEmpty else {
      return (nil, check.issues)
    }
    var reader = MigrationTableReader(file: source.name)
    let table = reader.table(node, name: name)
    var issues = check.issues + reader.issues
    // In a table with mistakes the examples would fail because of these.
    if issues.isEmpty { issues = MigrationLint(table).issues }
    return (table, issues.sorted { $0.location < $1.location })
  }
}

/// Converts the nodes of a migration table into values.
///
/// `GrammarCheck` reports violations of the grammar. This reader ignores refused nodes and reports
/// only mistakes beyond the grammar.
struct MigrationTableReader {
  private let file: String
  private(set) var issues: [PolicyIssue] = []

  init(file: String) { self.file = file }

  mutating func table(_ node: YAMLNode, name: String) -> MigrationTable {
    let isGeneral = node["general"]?.bool == true
    if let general = node["general"], general.bool == false {
      add(.value, at: general.mark, "'general' is false", expected: "true, or 'apps'")
    }
    return MigrationTable(
      name: name, title: node["title"]?.text, isGeneral: isGeneral, apps: apps(node["apps"]),
      notApps: notApps(node["not-apps"], isGeneral: isGeneral),
      places: places(node["places"]), notes: notes(node["notes"]),
      examples: examples(node["examples"]), location: location(node))
  }

  private func apps(_ node: YAMLNode?) -> [Packaging: [ByteString]] {
    var apps: [Packaging: [ByteString]] = [:]
    for entry in node?.mapping ?? [] {
      guard let packaging = Packaging(rawValue: entry.name) else { continue }
      apps[packaging] = Self.many(entry.value).compactMap(\.text).map { ByteString($0) }
    }
    return apps
  }

  private mutating func notApps(_ node: YAMLNode?, isGeneral: Bool) -> [Pattern] {
    if let node, !isGeneral {
      add(.key, at: node.mark, "'not-apps' is in the table of an app", expected: "general: true")
    }
    var patterns: [Pattern] = []
    for element in node?.sequence ?? [] {
      guard let text = element.text else { continue }
      do throws(Pattern.SyntaxError) {
        patterns.append(try Pattern(parsing: text))
      } catch {
        add(.pattern, at: element.mark, error.problem, expected: error.expected)
      }
    }
    return patterns
  }

  private mutating func places(_ node: YAMLNode?) -> [MigrationTable.Place] {
    var places: [MigrationTable.Place] = []
    var identifiers: [String: Int] = [:]
    for element in node?.sequence ?? [] {
      guard let id = element["id"]?.text else { continue }
      if let line = identifiers.updateValue(element.mark.line, forKey: id) {
        add(
          .duplicate, at: element.mark, "the id '\(id)' is already used in line \(line)",
          expected: "another id")
      }
      places.append(place(element, id: id))
    }
    return places
  }

  private mutating func place(_ node: YAMLNode, id: String) -> MigrationTable.Place {
    var paths: [Packaging: MigrationTable.Path] = [:]
    for packaging in Packaging.written {
      guard let value = node[packaging.rawValue], let path = path(value, in: packaging) else {
        continue
      }
      paths[packaging] = path
    }
    return MigrationTable.Place(
      id: id, paths: paths, skips: skips(node["skip"]),
      rewrites: Self.many(node["rewrite"]).compactMap { node in
        node.text.flatMap { RewriteRule(rawValue: $0) }
      },
      source: node["source"]?.text ?? "", location: location(node))
  }

  private mutating func skips(_ node: YAMLNode?) -> [MigrationTable.Skip] {
    var skips: [MigrationTable.Skip] = []
    for element in node?.sequence ?? [] {
      guard let match = element["match"], let text = match.text, let why = element["why"]?.text
      else { continue }
      do throws(Pattern.SyntaxError) {
        skips.append(
          MigrationTable.Skip(
            try Pattern(parsing: text), isOfLinks: element["type"]?.text == "link", why: why))
      } catch {
        add(.pattern, at: match.mark, error.problem, expected: error.expected)
      }
    }
    return skips
  }

  private func notes(_ node: YAMLNode?) -> [MigrationTable.Note] {
    (node?.sequence ?? []).compactMap { element in
      guard let text = element["text"]?.text else { return nil }
      let targets = Self.many(element["to"]).compactMap { node in
        node.text.flatMap { Packaging(rawValue: $0) }
      }
      return MigrationTable.Note(
        for: Set(element["to"] == nil ? Packaging.allCases : targets), text)
    }
  }

  private mutating func examples(_ node: YAMLNode?) -> [MigrationExample] {
    var examples: [MigrationExample] = []
    for element in node?.sequence ?? [] {
      guard let from = packaging(element["from"]), let to = packaging(element["to"]),
        let pathNode = element["path"], let path = path(pathNode, in: from),
        let expected = expectation(element, to)
      else { continue }
      examples.append(
        MigrationExample(
          from: from, to: to, path: path, expected: expected, location: location(element)))
    }
    return examples
  }

  private mutating func expectation(
    _ node: YAMLNode, _ target: Packaging
  ) -> MigrationExample.Expectation? {
    if let becomes = node["becomes"] { return path(becomes, in: target).map { .moves($0) } }
    switch node["outcome"]?.text {
    case "no-home": return .noPlace
    case "skipped": return .skipped
    default: return nil
    }
  }

  private func packaging(_ node: YAMLNode?) -> Packaging? {
    node?.text.flatMap { Packaging(rawValue: $0) }
  }

  /// Returns the path of a node, and refuses paths that could leave their directory.
  private mutating func path(_ node: YAMLNode, in packaging: Packaging) -> MigrationTable.Path? {
    guard let text = node.text, !text.isEmpty else { return nil }
    let isInHome = text.hasPrefix("~/")
    let bytes = ByteString(isInHome ? String(text.dropFirst(2)) : text)
    if let fault = Self.fault(of: bytes) {
      add(
        .value, at: node.mark, "'\(ByteString(text))' \(fault)",
        expected: "names separated by single slashes")
      return nil
    }
    if packaging == .snap, !isInHome, !["common", "current"].contains(bytes.components[0]) {
      add(
        .value, at: node.mark, "'\(ByteString(text))' is not in a directory of the snap's data",
        expected: "a path in 'common', in 'current', or in the home directory ('~/…')")
      return nil
    }
    return MigrationTable.Path(bytes, isInHome: isInHome && packaging.isSandbox)
  }

  /// Returns why bytes are not a relative path without special components, or nil if they are.
  static func fault(of path: ByteString) -> String? {
    let names = path.bytes.split(
      separator: ByteString.slash, omittingEmptySubsequences: false
    ).map { ByteString($0) }
    return names.lazy.compactMap(\.nameFault).first.map { "has a component that is invalid: \($0)" }
  }

  // MARK: - Helpers

  private static func many(_ node: YAMLNode?) -> [YAMLNode] {
    node.map { $0.sequence ?? [$0] } ?? []
  }

  private func location(_ node: YAMLNode) -> PolicyLocation { PolicyLocation(file, node.mark) }

  private mutating func add(
    _ kind: PolicyIssue.Kind, at mark: Mark, _ problem: String, expected: String
  ) {
    issues.append(PolicyIssue(kind, at: PolicyLocation(file, mark), problem, expected: expected))
  }
}
