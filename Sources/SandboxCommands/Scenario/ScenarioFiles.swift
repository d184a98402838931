internal import BuiltinPolicies
internal import PolicyEngine
internal import Scenario
internal import SystemIO

/// The scenarios that a command uses: files, and those that come with the program.
enum ScenarioFiles {
  /// The scenarios that come with the program, with their names.
  static var builtin: [(name: String, source: PolicySource)] {
    BuiltinPolicies.scenarios.map { file in
      let name = file.name.split(separator: "/").last?.dropLast(".yaml".count) ?? ""
      let source = PolicySource(
        name: "builtin:\(file.name)", bytes: file.bytes, origin: .builtin)
      return (String(name), source)
    }
  }

  /// Reads scenarios.
  ///
  /// - Parameters:
  ///   - names: paths of files, or names of scenarios that come with the program; all of the latter
  ///     if empty.
  ///   - report: receives each mistake in them.
  /// - Returns: the scenarios without mistakes, and whether that is all of them.
  static func read(
    _ names: [ByteString], report: (PolicyIssue) throws -> Void
  ) throws -> (documents: [ScenarioDocument], areValid: Bool) {
    var (documents, areValid) = ([ScenarioDocument](), true)
    for source in try sources(names) {
      let (document, issues) = ScenarioDocument.read(source)
      for issue in issues { try report(issue) }
      if let document { documents.append(document) } else { areValid = false }
    }
    return (documents, areValid)
  }

  private static func sources(_ names: [ByteString]) throws -> [PolicySource] {
    let builtin = builtin
    if names.isEmpty { return builtin.map(\.source) }
    return try names.map { name in
      try builtin.first { ByteString($0.name) == name }?.source ?? file(name)
    }
  }

  /// Reads one file. If it exceeds the maximum size, one byte more than that is returned.
  private static func file(_ path: ByteString) throws -> PolicySource {
    let file = try open(path)
    let limit = ScenarioDocument.maximumSize
    let bytes = try file.readAll(limit: limit) ?? file.read(count: limit + 1, at: 0)
    return PolicySource(name: path.description, bytes: bytes, origin: .commandLine)
  }

  private static func open(_ path: ByteString) throws -> Descriptor {
    do throws(SystemError) { return try Descriptor.open(path: path) } catch {
      guard error.isAbsent else { throw error }
      throw OperationError(
        .notFound, "open", subject: path, reason: error.reason,
        hint: "check the spelling; 'sandboxctl scenario list' lists the names of scenarios")
    }
  }
}
