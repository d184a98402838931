import Glibc
import SystemIO
import TestSupport
import Testing

/// A tree deeper than a program may have files open, with paths longer than the kernel takes.
@Suite struct DeepTreeTests {
  private static let depth = 5000

  @Test func isWalkedAndRemovedWithFewFilesOpen() throws {
    let temporary = try TemporaryFolder("deep")
    try make(in: temporary)
    // 5,000 names of 11 bytes: no path of 4,096 bytes reaches the end.
    var recorder = Deepest()
    var walk = Walk(try Folder.open(path: temporary.path))
    walk.run(&recorder, state: 0)
    #expect(recorder.problems.isEmpty)
    // A folder and a file at each level, and the two of the last.
    #expect(recorder.folders == Self.depth)
    #expect(recorder.files == Self.depth + 1)
    #expect(recorder.deepest == Self.depth)
    #expect((2...64).contains(recorder.mostOpen), "\(recorder.mostOpen) folders open at once")
    try temporary.folder.removeTree("level-00000")
    #expect(try temporary.folder.names() == ["file"])
  }

  private func make(in temporary: TemporaryFolder) throws {
    var ladder = FolderLadder(root: try Folder.open(path: temporary.path), limit: 4)
    for level in 0..<Self.depth {
      let name = ByteString("level-" + String(100_000 + level).dropFirst())
      try ladder.withFolder { folder throws(SystemError) in
        try folder.create("file").close()
        try folder.createFolder(name)
      }
      try ladder.descend(name)
    }
    try ladder.withFolder { folder throws(SystemError) in try folder.create("file").close() }
  }

  /// Counts, and looks at how many files are open at some depths.
  private struct Deepest: WalkVisitor {
    var tree: Set<FileIdentity> = []
    var folders = 0
    var files = 0
    var deepest = 0
    var mostOpen = 0
    var problems: [String] = []

    mutating func visit(
      _ batch: borrowing WalkBatch, of folder: borrowing WalkFolder, state: Int,
      descent: inout WalkDescent<Int>
    ) {
      deepest = max(deepest, folder.depth)
      #expect(state == folder.depth)
      if folder.depth % 500 == 0 {
        mostOpen = max(mostOpen, (try? openInTree()) ?? Int.max)
      }
      for index in batch.entries.indices {
        if batch.entries[index].status.kind == .directory {
          folders += 1
          tree.insert(batch.entries[index].status.identity)
          descent.enter(index, with: state + 1)
        } else {
          files += 1
        }
      }
    }

    /// How many of the tree's folders are open; other tests have open what is theirs.
    private func openInTree() throws -> Int {
      let open = try Folder.open(path: "/proc/self/fd")
      return try open.names().count { number in
        guard let status = try? open.statusFollowing(number) else { return false }
        return tree.contains(status.identity)
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Int) { problems.append("\(problem.error)") }
  }
}
