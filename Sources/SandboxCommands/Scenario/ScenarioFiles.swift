internal import BuiltinPolicies
internal import PolicyEngine
internal import Scenario
internal import SystemIO

/// The scenarios that a command uses: files, and those that come with the program.
enum ScenarioFiles {
  /// The scenarios that come with the program.
  static var builtin: [PolicySource] {
    BuiltinPolicies.scenarios.map {
      PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin)
    }
  }

  /// Reads the scenarios at paths, or those with the names `builtin:NAME`; without names all that come
  /// with the program.
  ///
  /// - Parameter report: receives each mistake in them.
  /// - Returns: the scenarios without mistakes, and whether all are.
  static func read(
    _ names: [ByteString], report: (PolicyIssue) throws -> Void
  ) throws -> (documents: [ScenarioDocument], areValid: Bool) {
    var (documents, areValid) = ([ScenarioDocument](), true)
    for source in try sources(names) {
      let (document, issues) = ScenarioDocument.read(source)
      for issue in issues { try report(issue) }
      if let document, !issues.contains(where: { $0.severity == .error }) {
        documents.append(document)
      } else {
        areValid = false
      }
    }
    return (documents, areValid)
  }

  private static func sources(_ names: [ByteString]) throws -> [PolicySource] {
    let builtin = builtin
    if names.isEmpty { return builtin }
    return try names.map { name in
      if let known = builtin.first(where: { ByteString($0.name) == name }) { return known }
      if name.bytes.starts(with: "builtin:".utf8) {
        throw UsageError(
          .notFound, "there is no scenario '\(name)'",
          hint: "'sandboxctl scenario list' lists those that come with the program")
      }
      return try file(name)
    }
  }

  /// Reads one file. If it exceeds the maximum size, one byte more than that is returned.
  private static func file(_ path: ByteString) throws -> PolicySource {
    let file = try Descriptor.open(path: path)
    let limit = ScenarioDocument.maximumSize
    let bytes = try file.readAll(limit: limit) ?? file.read(count: limit + 1, at: 0)
    return PolicySource(name: path.description, bytes: bytes, origin: .commandLine)
  }
}
