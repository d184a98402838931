public import SandboxModel

/// All policy files that there are: the program's, the machine's, the user's, the command line's.
public struct PolicyLibrary: Sendable {
  /// The files that could be read as policies, in the order of layers: by origin, those of a directory
  /// by file name.
  public let documents: [PolicyDocument]
  /// What each file does wrong by itself.
  private let issues: [String: [PolicyIssue]]
  private let policies: [String: Int]

  /// Reads the files. It never fails: what is wrong comes out of `lint`, and of `compile` where it
  /// matters.
  ///
  /// - Parameter replacements: Files that take the place of policies of their names, to be checked
  ///   instead of those; they have the origin of what they replace.
  public init(_ sources: [PolicySource], replacements: [PolicySource] = []) {
    self.init(reading: Self.replace(sources, by: replacements))
  }

  private init(reading sources: [PolicySource]) {
    var documents: [PolicyDocument] = []
    var issues: [String: [PolicyIssue]] = [:]
    var policies: [String: Int] = [:]
    for source in Self.inOrder(sources) {
      let (document, found) = PolicyDocument.read(source)
      issues[source.name, default: []] += found
      guard let document else { continue }
      if let name = document.name {
        if let earlier = policies[name] {
          issues[source.name, default: []].append(
            PolicyIssue(
              .duplicate, at: document.location,
              "the policy '\(name)' is already in \(documents[earlier].source.name)",
              expected: "another name, or 'overlay' to lie over it"))
        } else {
          policies[name] = documents.count
        }
      }
      documents.append(document)
    }
    self.documents = documents
    self.issues = issues
    self.policies = policies
  }

  private static func replace(
    _ sources: [PolicySource], by replacements: [PolicySource]
  ) -> [PolicySource] {
    var sources = sources
    var names: [Int: String] = [:]
    if !replacements.isEmpty {
      for (index, source) in sources.enumerated() {
        names[index] = PolicyDocument.read(source).document?.name
      }
    }
    for replacement in replacements {
      let name = PolicyDocument.read(replacement).document?.name
      let place = name.flatMap { name in names.first { $0.value == name }?.key }
      if let place {
        sources[place] = PolicySource(
          name: replacement.name, bytes: replacement.bytes, origin: sources[place].origin)
      } else {
        sources.append(replacement)
      }
    }
    return sources
  }

  private static func inOrder(_ sources: [PolicySource]) -> [PolicySource] {
    PolicyOrigin.allCases.flatMap { origin in
      let own = sources.filter { $0.origin == origin }
      guard origin == .system || origin == .user else { return own }
      return own.sorted { $0.fileName.utf8.lexicographicallyPrecedes($1.fileName.utf8) }
    }
  }

  /// The policies by name, in the order of their files.
  public var policyNames: [String] { documents.compactMap(\.name) }

  /// The policy of a name.
  public func policy(_ name: String) -> PolicyDocument? { policies[name].map { documents[$0] } }

  /// The policy for devices of a layout when none is named: the first that says so.
  public func defaultPolicy(for layout: Layout) -> String? {
    documents.first { $0.layout == layout && $0.name != nil }?.name
  }

  /// What is wrong with a file by itself.
  func ownIssues(_ document: PolicyDocument) -> [PolicyIssue] { issues[document.source.name] ?? [] }

  /// What is wrong with the files that are no policies at all.
  var unreadableIssues: [PolicyIssue] {
    let readable = Set(documents.map(\.source.name))
    return issues.filter { !readable.contains($0.key) }.flatMap(\.value)
  }
}
