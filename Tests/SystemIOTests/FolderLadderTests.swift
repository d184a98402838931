import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct FolderLadderTests {
  let temporary: TemporaryFolder
  init() throws {
    temporary = try TemporaryFolder("ladder")
    try temporary.write("x", at: "a/b/c/d/e/f/file")
  }

  private let names: [ByteString] = ["a", "b", "c", "d", "e", "f"]

  /// A ladder down to the deepest folder, of which two are open.
  private func descended() throws -> FolderLadder {
    var ladder = FolderLadder(root: try Folder.open(path: temporary.path), limit: 2)
    for name in names { try ladder.descend(name) }
    return ladder
  }

  private func inHand(_ ladder: borrowing FolderLadder) throws -> [ByteString] {
    try ladder.withFolder { folder throws(SystemError) in try folder.names() }
  }

  @Test func knowsWhereItIs() throws {
    var ladder = try descended()
    #expect(ladder.depth == 6)
    #expect(ladder.relativePath == "a/b/c/d/e/f")
    #expect(ladder.path == temporary.path("a/b/c/d/e/f"))
    try ladder.ascend(to: 0)
    #expect(ladder.depth == 0)
    #expect(ladder.relativePath == "")
    #expect(ladder.path == temporary.path)
  }

  @Test func goesUpThroughFoldersThatItHadToClose() throws {
    var ladder = try descended()
    #expect(try inHand(ladder) == ["file"])
    for depth in (0..<6).reversed() {
      try ladder.ascend(to: depth)
      #expect(try inHand(ladder) == [names[depth]])
      #expect(ladder.relativePath.components == Array(names[..<depth]))
    }
    try ladder.descend("a")
    #expect(try inHand(ladder) == ["b"])
  }

  @Test func goesUpManyAtOnceAndDownAgain() throws {
    var ladder = try descended()
    try ladder.ascend(to: 1)
    #expect(try inHand(ladder) == ["b"])
    for name in names[1...] { try ladder.descend(name) }
    #expect(try inHand(ladder) == ["file"])
    try ladder.ascend(to: 9)
    #expect(ladder.depth == 6)
  }

  @Test func findsAFolderThatWasRenamedAsAWhole() throws {
    var ladder = try descended()
    try temporary.folder.rename("a", to: "renamed", in: temporary.folder)
    try ladder.ascend(to: 1)
    #expect(try inHand(ladder) == ["b"])
  }

  @Test func aFolderMovedAwayBelowIsFoundByNameFromTheRoot() throws {
    var ladder = try descended()
    // The lowest ones elsewhere: `..` from them is not the way back.
    let d = try Folder.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.folder)
    try ladder.ascend(to: 4)
    #expect(try inHand(ladder) == [])
    #expect(ladder.relativePath == "a/b/c/d")
  }

  @Test func anotherFolderOfTheSameNameIsNotAccepted() throws {
    var ladder = try descended()
    let d = try Folder.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.folder)
    try temporary.folder.rename("a", to: "old", in: temporary.folder)
    try temporary.write("impostor", at: "a/b/c/d/file")
    let error = failure { try ladder.ascend(to: 4) }
    #expect(error?.number == ESTALE)
    #expect(error?.reason == "it was replaced by something else meanwhile")
    // Nothing can be done there, nor is something else done instead.
    #expect(failure { try ladder.descend("e") } != nil)
    #expect(failure { try ladder.ascend(to: 4) } != nil)
    // Further up it succeeds.
    try ladder.ascend(to: 0)
    #expect(try inHand(ladder) == ["a", "e", "old"])
  }

  @Test func whatVanishedIsMissing() throws {
    var ladder = try descended()
    let d = try Folder.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.folder)
    try temporary.folder.removeTree("a")
    #expect(failure { try ladder.ascend(to: 4) }?.isMissing == true)
    try ladder.ascend(to: 0)
    #expect(try inHand(ladder) == ["e"])
  }

  @Test func refusesLinksAndWhatIsNotExpected() throws {
    var ladder = FolderLadder(root: try Folder.open(path: temporary.path))
    let (a, other) = try (temporary.folder.status("a"), temporary.folder.status())
    try ladder.descend("a", a.identity)
    try ladder.ascend(to: 0)
    let error = failure { try ladder.descend("a", other.identity) }
    #expect(error?.number == ESTALE && error?.path == temporary.path("a"))
    #expect(ladder.depth == 0)
    try temporary.folder.createLink("link", to: "a")
    #expect(failure { try ladder.descend("link") } != nil)
    #expect(failure { try ladder.descend("none") }?.isMissing == true)
    #expect(try inHand(ladder) == ["a", "link"])
  }

  @Test func anyCallMayFailAndTheRootIsReachedAllTheSame() throws {
    for first in 1...60 {
      let plan = Faults.Plan(failing: [.open, .status], at: first, number: EIO)
      var ladder = FolderLadder(root: try Folder.open(path: temporary.path), limit: 2)
      Faults.inject(plan) {
        for (depth, name) in names.enumerated() where ladder.depth == depth {
          _ = failure { try ladder.descend(name) }
        }
        for depth in (0..<6).reversed() { _ = failure { try ladder.ascend(to: depth) } }
      }
      #expect(try inHand(ladder) == ["a"], "call \(first) failing")
      if !plan.hasFired { return }
    }
    Issue.record("the plan fired each time")
  }
}
