import Glibc
import SystemIO
import TestSupport
import Testing

/// A tree that is deeper than the limit of open files, and whose paths are longer than the kernel
/// accepts.
struct DeepTreeTests {
  private static let depth = 5000

  @Test func aDeepTreeIsWalkedAndRemovedWithFewFilesOpen() throws {
    let temporary = try TemporaryDirectory("deep")
    try make(in: temporary)
    // The names have 11 bytes, so at a depth of 5,000 no path fits into the limit of 4,096 bytes.
    var recorder = Deepest()
    var walk = Walk(try Directory.open(path: temporary.path))
    walk.run(&recorder, state: 0)
    #expect(recorder.problems.isEmpty)
    // There is a directory and a file at each level, and two more at the end.
    #expect(recorder.directories == Self.depth)
    #expect(recorder.files == Self.depth + 1)
    #expect(recorder.deepest == Self.depth)
    #expect((2...64).contains(recorder.mostOpen), "\(recorder.mostOpen) directories open at once")
    try temporary.directory.removeTree("level-00000")
    #expect(try temporary.directory.names() == ["file"])
  }

  private func make(in temporary: TemporaryDirectory) throws {
    var cursor = DirectoryCursor(root: try Directory.open(path: temporary.path), limit: 4)
    for level in 0..<Self.depth {
      let name = ByteString("level-" + String(100_000 + level).dropFirst())
      try cursor.withDirectory { directory throws(SystemError) in
        try directory.create("file").close()
        try directory.createDirectory(name)
      }
      try cursor.descend(name)
    }
    try cursor.withDirectory { directory throws(SystemError) in try directory.create("file").close()
    }
  }

  /// Counts entries, and the open files at some depths.
  private struct Deepest: WalkVisitor {
    var tree: Set<FileIdentity> = []
    var directories = 0
    var files = 0
    var deepest = 0
    var mostOpen = 0
    var problems: [String] = []

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Int,
      descent: inout WalkDescent<Int>
    ) {
      deepest = max(deepest, directory.depth)
      #expect(state == directory.depth)
      if directory.depth % 500 == 0 {
        mostOpen = max(mostOpen, (try? openInTree()) ?? Int.max)
      }
      for index in batch.entries.indices {
        if batch.entries[index].status.kind == .directory {
          directories += 1
          tree.insert(batch.entries[index].status.identity)
          descent.enter(index, with: state + 1)
        } else {
          files += 1
        }
      }
    }

    /// Returns the number of open directories of the tree. Other tests may have other files open.
    private func openInTree() throws -> Int {
      let open = try Directory.open(path: "/proc/self/fd")
      return try open.names().count { number in
        guard let status = try? open.statusFollowing(number) else { return false }
        return tree.contains(status.identity)
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Int) { problems.append("\(problem.error)") }
  }
}
