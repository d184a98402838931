internal import Codecs
package import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The error codes with which a step can be expected to fail.
enum ErrorCodes {
  static let all = ErrorCode.allCases.map(\.rawValue)
}

extension ScenarioDocument {
  /// Reads a document.
  ///
  /// - Returns: The document, if the text has no mistake, and every mistake, ordered by position.
  package static func read(
    _ source: PolicySource
  ) -> (document: ScenarioDocument?, issues: [PolicyIssue]) {
    let (node, unreadable) = source.parse(
      as: "a scenario", limits: YAML.Limits(bytes: maximumSize, depth: 16, nodes: 50_000))
    guard let node else { return (nil, unreadable) }
    var check = GrammarCheck(file: source.name)
    check.check(node, against: .record(ScenarioGrammar.file), named: "the file")
    var reader = ScenarioReader(file: source.name)
    let document = reader.document(node)
    let issues = (check.issues + reader.issues).sorted { $0.location < $1.location }
    return (issues.isEmpty ? document : nil, issues)
  }
}

/// Converts the nodes of a scenario into values.
///
/// `GrammarCheck` reports violations of the grammar. This reader ignores refused nodes and reports
/// only mistakes beyond the grammar.
struct ScenarioReader {
  let file: String
  private(set) var issues: [PolicyIssue] = []
  /// The names of states that the steps read so far define.
  var moments: Set<String> = [ScenarioMoment.beginning]
  /// The names of backups that the steps read so far define.
  var backups: Set<String> = []
  var patternCount = 0

  init(file: String) { self.file = file }

  mutating func document(_ node: YAMLNode) -> ScenarioDocument? {
    let steps = node["steps"]?.sequence ?? []
    if steps.isEmpty, let list = node["steps"], list.sequence != nil {
      add(.value, at: list.mark, "there are no steps", expected: "at least one step")
    }
    if steps.count > ScenarioDocument.maximumSteps {
      add(
        .value, at: steps[ScenarioDocument.maximumSteps].mark, "there are \(steps.count) steps",
        expected: "at most \(ScenarioDocument.maximumSteps)")
      return nil
    }
    let read = steps.compactMap { step($0) }
    let versions = versions(node["versions"])
    guard let name = node["scenario"]?.text, let device = device(node["device"]) else { return nil }
    return ScenarioDocument(
      name: name, description: node["description"]?.text,
      sources: Self.many(node["sources"]).compactMap(\.text), device: device, versions: versions,
      steps: read, location: location(node))
  }

  private func device(_ node: YAMLNode?) -> ScenarioDocument.Device? {
    if let day = node?["sample"]?.integer { return .sample(day: Int(clamping: day)) }
    guard let root = node?["root"]?.text, !root.isEmpty else { return nil }
    return .root(
      ByteString(root), layout: node?["layout"]?.text.flatMap { Layout(rawValue: $0) })
  }

  private mutating func versions(_ node: YAMLNode?) -> [ScenarioDocument.Version] {
    guard let node else { return [.now] }
    var versions: [ScenarioDocument.Version] = []
    for element in Self.many(node) {
      guard let text = element.text else { continue }
      guard let version = ScenarioDocument.Version(text) else {
        add(
          .value, at: element.mark, "'\(ByteString(text))' is not a version",
          expected: "numbers with dots, or 'now'")
        continue
      }
      if versions.contains(where: { $0.osVersion == version.osVersion }) {
        add(.duplicate, at: element.mark, "the version is named twice", expected: "another one")
      }
      versions.append(version)
    }
    if versions.count > ScenarioDocument.maximumVersions {
      add(
        .value, at: node.mark, "there are \(versions.count) versions",
        expected: "at most \(ScenarioDocument.maximumVersions)")
    }
    return versions.isEmpty ? [.now] : versions
  }

  // MARK: - Steps

  private mutating func step(_ node: YAMLNode) -> ScenarioStep? {
    guard let entry = action(in: node), let action = action(entry) else { return nil }
    return ScenarioStep(
      action: action, versions: range(node["versions"]),
      failure: node["fails"]?.text.flatMap { ErrorCode(rawValue: $0) }, location: location(node))
  }

  /// Returns the entry of a step that names its action.
  func action(in node: YAMLNode?) -> YAMLNode.Entry? {
    node?.mapping?.first { ScenarioAction.Kind(rawValue: $0.name) != nil }
  }

  func range(_ node: YAMLNode?) -> OSVersion.Range {
    node?.text.flatMap { OSVersion.Range($0) } ?? .all
  }

  // MARK: - Parts

  /// Returns the logical path of a node, which has to name an entry in a container.
  mutating func path(_ node: YAMLNode?) -> LogicalPath? {
    guard let node, let text = node.text else { return nil }
    do throws(ModelError) {
      let path = try LogicalPath(ByteString(text))
      if let inner = path.location?.inner, !inner.isEmpty { return path }
      add(
        .value, at: node.mark, "'\(path)' does not name an entry in a container",
        expected: "a logical path, for example apps/com.example.app/data/Documents/x")
    } catch {
      add(.value, at: node.mark, error.reason, expected: "a logical path")
    }
    return nil
  }

  mutating func patterns(_ node: YAMLNode?) -> [Pattern] {
    var patterns: [Pattern] = []
    for element in Self.many(node) {
      guard let text = element.text else { continue }
      patternCount += 1
      if patternCount == ScenarioDocument.maximumPatterns + 1 {
        add(
          .value, at: element.mark, "there are too many patterns",
          expected: "at most \(ScenarioDocument.maximumPatterns)")
      }
      do throws(Pattern.SyntaxError) {
        patterns.append(try Pattern(parsing: text))
      } catch {
        add(.pattern, at: element.mark, error.problem, expected: error.expected)
      }
    }
    return patterns
  }

  static func many(_ node: YAMLNode?) -> [YAMLNode] { node.map { $0.sequence ?? [$0] } ?? [] }

  func location(_ node: YAMLNode) -> PolicyLocation { PolicyLocation(file, node.mark) }

  mutating func add(
    _ kind: PolicyIssue.Kind, at mark: Mark, _ problem: String, expected: String
  ) {
    issues.append(PolicyIssue(kind, at: PolicyLocation(file, mark), problem, expected: expected))
  }
}
