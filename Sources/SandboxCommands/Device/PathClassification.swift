internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `classify --stdin0`: classifies logical paths from standard input without access to any file.
struct PathClassification {
  private let command: ClassifyCommand

  init(_ command: ClassifyCommand) { self.command = command }

  func run(_ console: Console) throws {
    guard let input = try StandardStream.readInput(limit: Self.limit) else {
      throw UsageError(
        "standard input has more than \(Self.limit >> 20) MiB of paths",
        hint: "split them into several runs")
    }
    let layout = try command.device.chosenLayout() ?? .coreSimulator
    let policy = try command.policy.compile(for: layout, version: nil)
    var classifier = Classifier(policy)
    for path in input.split(separator: 0) {
      try classify(ByteString(path), with: &classifier, console)
    }
  }

  /// The maximum size of the input, in bytes.
  private static let limit = 1 << 30

  private func classify(
    _ given: ByteString, with classifier: inout Classifier, _ console: Console
  ) throws {
    let isDirectory = given.bytes.last == UInt8(ascii: "/")
    let path = ByteString(joining: given.components)
    guard let (container, inner) = try LogicalPath(path).place else {
      throw UsageError(
        "'\(given)' is not a logical path in a container",
        hint: "write it like 'apps/com.example.app/data/Documents/x'")
    }
    let state = container.state(&classifier)
    let facts = EntryFacts(isDirectory ? .directory : .file)
    let end = inner.withSpan { classifier.descend(state, path: $0) }
    let verdict = classifier.verdicts(end, facts)[command.verdict.view]
    let mode = verdict.backup.mode(for: try command.verdict.destination)
    let stored: ScannedEntry.Selection = mode == .never ? .excluded : .included
    if command.output.json {
      let members =
        JSON.path(path) + [
          JSON.Member("type", .string(isDirectory ? "directory" : "file")),
          JSON.Member("stored", .string(stored.word)),
        ] + verdict.members(isRoot: inner.isEmpty)
      try console.result(JSON.object(members))
    } else {
      try console.result(
        ClassifiedEntries.line(
          verdict, stored: stored.word, at: path, kind: isDirectory ? .directory : .file,
          isRoot: inner.isEmpty))
    }
  }
}

extension LogicalContainer {
  /// Returns the classifier's state for the container's root.
  func state(_ classifier: inout Classifier) -> Classifier.State {
    var group: String?
    if case .group(let name) = self { group = name.identifier.utf8 }
    return classifier.root(kind, app: app?.identifier.utf8, group: group)
  }
}
