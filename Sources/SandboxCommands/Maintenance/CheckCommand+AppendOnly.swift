internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// `sandboxctl check --append-only`: checks whether these credentials can replace or remove
/// objects.
extension CheckCommand {
  func checkProtection(_ console: Console) throws -> ExitStatus {
    let given = [
      (readData, "--read-data"), (readDataSubset != nil, "--read-data-subset"),
      (metrics.metrics != nil, "--metrics"),
    ]
    if let other = given.first(where: \.0)?.1 {
      throw UsageError(
        .optionsConflict, "'--append-only' and '\(other)' cannot be used together",
        hint: "give one of them")
    }
    let opened = try repository.open(console).repository
    let results = try ProtectionCheck(opened).run()
    let isProtected = results.allSatisfy(\.isProtected)
    if output.json {
      for result in results { try console.result(result.json) }
      try console.result(["append_only": .bool(isProtected)] as JSON)
    } else if !output.quiet || !isProtected {
      for result in results { try console.result(result.text) }
      try console.result(Self.conclusion(results))
    }
    guard !isProtected else { return .done }
    console.hint(
      opened.storage.canRename
        ? "a file system and SFTP cannot forbid it: keep older backups by snapshots of the "
          + "volume, or by a mirror that the server makes"
        : "use a bucket with object lock, or one with versions and credentials without the right "
          + "to remove versions")
    return .goalNotMet
  }

  /// Returns the final sentence.
  private static func conclusion(_ results: [ProtectionCheck.Result]) -> String {
    let outcomes = results.flatMap { [$0.replacement, $0.removal] }
    if outcomes.contains(.possible) {
      let verbs = [
        results.contains { $0.replacement == .possible } ? "replace" : nil,
        results.contains { $0.removal == .possible } ? "remove" : nil,
      ].compactMap { $0 }
      return "these credentials can \(verbs.joined(separator: " and ")) objects"
    }
    return outcomes.contains(.kept)
      ? "these credentials can hide objects, but what they replace or remove stays as a version "
        + "that they cannot remove"
      : "these credentials can neither replace nor remove objects"
  }
}

extension ProtectionCheck.Outcome {
  fileprivate var text: String {
    switch self {
    case .refused: "refused"
    case .kept: "kept as a version"
    case .possible: "possible"
    }
  }
}

extension ProtectionCheck.Result {
  fileprivate var text: String {
    let name = directory.padding(to: 9)
    return "\(name)  replacement \(replacement.text), removal \(removal.text)"
  }

  /// The result as a line of `check --append-only --json`.
  fileprivate var json: JSON {
    [
      "finding": "protection", "directory": .string(directory),
      "replacement": .string(replacement.rawValue), "removal": .string(removal.rawValue),
    ]
  }
}

extension String {
  /// Returns the text padded with spaces to a number of characters.
  fileprivate func padding(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
