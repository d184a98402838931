internal import PolicyEngine
internal import Scenario
internal import SystemIO

/// The files with scenarios that a command uses.
enum ScenarioFiles {
  /// Reads files.
  ///
  /// - Parameter report: receives each mistake in them.
  /// - Returns: the scenarios without mistakes, and whether all are.
  static func read(
    _ paths: [ByteString], report: (PolicyIssue) throws -> Void
  ) throws -> (documents: [ScenarioDocument], areValid: Bool) {
    var (documents, areValid) = ([ScenarioDocument](), true)
    for path in paths {
      let (document, issues) = ScenarioDocument.read(try file(path))
      for issue in issues { try report(issue) }
      if let document { documents.append(document) } else { areValid = false }
    }
    return (documents, areValid)
  }

  /// Reads one file. If it exceeds the maximum size, one byte more than that is returned.
  private static func file(_ path: ByteString) throws -> PolicySource {
    let file = try Descriptor.open(path: path)
    let limit = ScenarioDocument.maximumSize
    let bytes = try file.readAll(limit: limit) ?? file.read(count: limit + 1, at: 0)
    return PolicySource(name: path.description, bytes: bytes, origin: .commandLine)
  }
}
