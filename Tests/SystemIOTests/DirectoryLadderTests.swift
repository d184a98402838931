import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct DirectoryLadderTests {
  let temporary: TemporaryDirectory
  init() throws {
    temporary = try TemporaryDirectory("ladder")
    try temporary.write("x", at: "a/b/c/d/e/f/file")
  }

  private let names: [ByteString] = ["a", "b", "c", "d", "e", "f"]

  /// A ladder down to the deepest directory, with two directories open.
  private func descended() throws -> DirectoryLadder {
    var ladder = DirectoryLadder(root: try Directory.open(path: temporary.path), limit: 2)
    for name in names { try ladder.descend(name) }
    return ladder
  }

  private func active(_ ladder: borrowing DirectoryLadder) throws -> [ByteString] {
    try ladder.withDirectory { directory throws(SystemError) in try directory.names() }
  }

  @Test func reportsItsDepthAndPath() throws {
    var ladder = try descended()
    #expect(ladder.depth == 6)
    #expect(ladder.relativePath == "a/b/c/d/e/f")
    #expect(ladder.path == temporary.path("a/b/c/d/e/f"))
    try ladder.ascend(to: 0)
    #expect(ladder.depth == 0)
    #expect(ladder.relativePath == "")
    #expect(ladder.path == temporary.path)
  }

  @Test func ascendsThroughClosedDirectories() throws {
    var ladder = try descended()
    #expect(try active(ladder) == ["file"])
    for depth in (0..<6).reversed() {
      try ladder.ascend(to: depth)
      #expect(try active(ladder) == [names[depth]])
      #expect(ladder.relativePath.components == Array(names[..<depth]))
    }
    try ladder.descend("a")
    #expect(try active(ladder) == ["b"])
  }

  @Test func ascendsSeveralLevelsAndDescendsAgain() throws {
    var ladder = try descended()
    try ladder.ascend(to: 1)
    #expect(try active(ladder) == ["b"])
    for name in names[1...] { try ladder.descend(name) }
    #expect(try active(ladder) == ["file"])
    try ladder.ascend(to: 9)
    #expect(ladder.depth == 6)
  }

  @Test func findsTheWayAfterARename() throws {
    var ladder = try descended()
    try temporary.directory.rename("a", to: "renamed", in: temporary.directory)
    try ladder.ascend(to: 1)
    #expect(try active(ladder) == ["b"])
  }

  @Test func aParentOfAMovedDirectoryIsFoundByName() throws {
    var ladder = try descended()
    // The lowest directories are elsewhere: `..` does not lead back.
    let d = try Directory.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.directory)
    try ladder.ascend(to: 4)
    #expect(try active(ladder) == [])
    #expect(ladder.relativePath == "a/b/c/d")
  }

  @Test func anotherDirectoryOfTheSameNameIsNotAccepted() throws {
    var ladder = try descended()
    let d = try Directory.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.directory)
    try temporary.directory.rename("a", to: "old", in: temporary.directory)
    try temporary.write("impostor", at: "a/b/c/d/file")
    let error = failure { try ladder.ascend(to: 4) }
    #expect(error?.number == ESTALE)
    #expect(error?.reason == "it was replaced in the meantime")
    // Nothing can be done there, and nothing else is done instead.
    #expect(failure { try ladder.descend("e") } != nil)
    #expect(failure { try ladder.ascend(to: 4) } != nil)
    // Further up it succeeds.
    try ladder.ascend(to: 0)
    #expect(try active(ladder) == ["a", "e", "old"])
  }

  @Test func aDeletedDirectoryIsMissing() throws {
    var ladder = try descended()
    let d = try Directory.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.directory)
    try temporary.directory.removeTree("a")
    #expect(failure { try ladder.ascend(to: 4) }?.isMissing == true)
    try ladder.ascend(to: 0)
    #expect(try active(ladder) == ["e"])
  }

  @Test func refusesLinksAndUnexpectedDirectories() throws {
    var ladder = DirectoryLadder(root: try Directory.open(path: temporary.path))
    let (a, other) = try (temporary.directory.status("a"), temporary.directory.status())
    try ladder.descend("a", a.identity)
    try ladder.ascend(to: 0)
    let error = failure { try ladder.descend("a", other.identity) }
    #expect(error?.number == ESTALE && error?.path == temporary.path("a"))
    #expect(ladder.depth == 0)
    try temporary.directory.createLink("link", to: "a")
    #expect(failure { try ladder.descend("link") } != nil)
    #expect(failure { try ladder.descend("none") }?.isMissing == true)
    #expect(try active(ladder) == ["a", "link"])
  }

  @Test func theRootIsReachedAfterAnyFailure() throws {
    for first in 1...60 {
      let plan = Faults.Plan(failing: [.open, .status], at: first, number: EIO)
      var ladder = DirectoryLadder(root: try Directory.open(path: temporary.path), limit: 2)
      Faults.inject(plan) {
        for (depth, name) in names.enumerated() where ladder.depth == depth {
          _ = failure { try ladder.descend(name) }
        }
        for depth in (0..<6).reversed() { _ = failure { try ladder.ascend(to: depth) } }
      }
      #expect(try active(ladder) == ["a"], "call \(first) failing")
      if !plan.hasFired { return }
    }
    Issue.record("the plan fired in each round")
  }
}
