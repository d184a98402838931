import Foundation
import SystemIO
import TestSupport
import Testing

/// Compares a restored device with its source and the policy: the restored device must be the
/// source without exactly the entries that `classify` reports as never backed up.
enum PolicyComparison {
  /// Compares the device (nil: the user's own) with all of its latest snapshot, restored to `back`;
  /// `entries` is the answer of `classify` with the policy of the backup.
  static func expectRestored(
    _ cli: CommandLine, device: String?, back: String, entries: [ClassifiedEntry]? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let entries = try entries ?? cli.classification(of: device)
    try expectComplete(entries, cli, device, sourceLocation)
    let tree = ExpectedTree(entries)
    expectSameDecisions(entries, tree, sourceLocation)
    #expect(tree.stored.count > 5, sourceLocation: sourceLocation)
    #expect(tree.stored.count < entries.count, sourceLocation: sourceLocation)
    let expected = ByteString("expected of \(back)")
    try tree.make(at: cli.directory.path(expected))
    try ChangeDetector.expectSame(
      cli.directory, expected, ByteString(back), sourceLocation: sourceLocation)
  }

  /// Expects one line for each entry of each container.
  private static func expectComplete(
    _ entries: [ClassifiedEntry], _ cli: CommandLine, _ device: String?,
    _ sourceLocation: SourceLocation
  ) throws {
    let classified = Set(entries.map(\.path))
    #expect(classified.count == entries.count, "one line each", sourceLocation: sourceLocation)
    var there: Set<ByteString> = []
    var shared: [ByteString] = []
    for container in try cli.containers(of: device) {
      there.insert(container.path)
      // In a directory with the settings, files or bundles of all apps, one entry belongs to the
      // container.
      let isOneFile = container.json["kind"] as? String == "file"
      if isOneFile || ["overrides", "Applications"].contains(container.realPath.lastComponent) {
        shared.append(container.path)
        continue
      }
      for inner in try TreePaths.list(container.realPath) {
        there.insert(container.path.appending(inner))
      }
    }
    let forgotten = there.subtracting(classified).sorted().prefix(5)
    #expect(forgotten.isEmpty, "not classified", sourceLocation: sourceLocation)
    let invented = classified.subtracting(there)
      .filter { path in !shared.contains { path.isWithin($0) } }.sorted().prefix(5)
    #expect(invented.isEmpty, "not there", sourceLocation: sourceLocation)
  }

  /// Expects the decision that `classify` reports to agree with the policy for each entry.
  private static func expectSameDecisions(
    _ entries: [ClassifiedEntry], _ tree: ExpectedTree, _ sourceLocation: SourceLocation
  ) {
    let wrong = entries.filter { entry in
      let isStored = tree.stored[entry.path] != nil
      return entry.stored != (entry.isKept ? "kept" : isStored ? "bare" : "left-out")
    }
    let named = wrong.prefix(5).map { "\($0.path): \($0.stored), backup \($0.backup)" }
    #expect(named.isEmpty, sourceLocation: sourceLocation)
  }
}

/// Collects the paths below a directory.
private struct TreePaths: WalkVisitor {
  private var paths: [ByteString] = []

  static func list(_ root: ByteString) throws -> [ByteString] {
    var lister = TreePaths()
    var walk = Walk(try Directory.open(path: root))
    walk.run(&lister, state: ())
    return lister.paths
  }

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
    descent: inout WalkDescent<Void>
  ) {
    for (index, entry) in batch.entries.enumerated() {
      paths.append(directory.relativePath.appending(batch.name(entry)))
      if entry.status.kind == .directory { descent.enter(index, with: ()) }
    }
  }

  mutating func failed(_ problem: WalkProblem, state: Void) {
    Issue.record("\(problem.path): \(problem.error)")
  }
}
