import Glibc
import SystemIO
import TestSupport
import Testing

struct DirectoryCursorTests {
  let temporary: TemporaryDirectory
  init() throws {
    temporary = try TemporaryDirectory("cursor")
    try temporary.write("x", at: "a/b/c/d/e/f/file")
  }

  private let names: [ByteString] = ["a", "b", "c", "d", "e", "f"]

  /// Returns a cursor at the deepest directory, with two directories open.
  private func descended() throws -> DirectoryCursor {
    var cursor = DirectoryCursor(root: try Directory.open(path: temporary.path), limit: 2)
    for name in names { try cursor.descend(name) }
    return cursor
  }

  private func active(_ cursor: borrowing DirectoryCursor) throws -> [ByteString] {
    try cursor.withDirectory { directory throws(SystemError) in try directory.names() }
  }

  @Test func reportsItsDepthAndPath() throws {
    var cursor = try descended()
    #expect(cursor.depth == 6)
    #expect(cursor.relativePath == "a/b/c/d/e/f")
    #expect(cursor.path == temporary.path("a/b/c/d/e/f"))
    try cursor.ascend(to: 0)
    #expect(cursor.depth == 0)
    #expect(cursor.relativePath == "")
    #expect(cursor.path == temporary.path)
  }

  @Test func ascendsThroughClosedDirectories() throws {
    var cursor = try descended()
    #expect(try active(cursor) == ["file"])
    for depth in (0..<6).reversed() {
      try cursor.ascend(to: depth)
      #expect(try active(cursor) == [names[depth]])
      #expect(cursor.relativePath.components == Array(names[..<depth]))
    }
    try cursor.descend("a")
    #expect(try active(cursor) == ["b"])
  }

  @Test func ascendsSeveralLevelsAndDescendsAgain() throws {
    var cursor = try descended()
    try cursor.ascend(to: 1)
    #expect(try active(cursor) == ["b"])
    for name in names[1...] { try cursor.descend(name) }
    #expect(try active(cursor) == ["file"])
    try cursor.ascend(to: 9)
    #expect(cursor.depth == 6)
  }

  /// At the limit of open files, directories above the current one are closed, and reopened later.
  @Test func descendsAtTheLimitOfOpenFiles() throws {
    var cursor = DirectoryCursor(root: try Directory.open(path: temporary.path))
    for name in names.dropLast() { try cursor.descend(name) }
    let faults = Faults.Plan(failing: [.open], at: 1, number: EMFILE)
    try Faults.inject(faults) { () throws(SystemError) in try cursor.descend("f") }
    #expect(faults.hasFired)
    #expect(try active(cursor) == ["file"])
    for depth in (0..<6).reversed() {
      try cursor.ascend(to: depth)
      #expect(try active(cursor) == [names[depth]])
    }
    // There is no directory left to close.
    let first = Faults.Plan(failing: [.open], at: 1, number: EMFILE)
    let error = Faults.inject(first) { failure { try cursor.descend("a") } }
    #expect(error?.number == EMFILE)
  }

  @Test func findsTheWayAfterARename() throws {
    var cursor = try descended()
    try temporary.directory.rename("a", to: "renamed", in: temporary.directory)
    try cursor.ascend(to: 1)
    #expect(try active(cursor) == ["b"])
  }

  @Test func aParentOfAMovedDirectoryIsFoundByName() throws {
    var cursor = try descended()
    // The lowest directory was moved, so `..` does not lead back.
    let d = try Directory.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.directory)
    try cursor.ascend(to: 4)
    #expect(try active(cursor) == [])
    #expect(cursor.relativePath == "a/b/c/d")
  }

  @Test func anotherDirectoryOfTheSameNameIsNotAccepted() throws {
    var cursor = try descended()
    let d = try Directory.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.directory)
    try temporary.directory.rename("a", to: "old", in: temporary.directory)
    try temporary.write("impostor", at: "a/b/c/d/file")
    let error = failure { try cursor.ascend(to: 4) }
    #expect(error?.number == ESTALE)
    #expect(error?.reason == "it was replaced in the meantime")
    // The cursor cannot continue there, and does not continue elsewhere.
    #expect(failure { try cursor.descend("e") } != nil)
    #expect(failure { try cursor.ascend(to: 4) } != nil)
    // Ascending further succeeds.
    try cursor.ascend(to: 0)
    #expect(try active(cursor) == ["a", "e", "old"])
  }

  @Test func aDeletedDirectoryIsMissing() throws {
    var cursor = try descended()
    let d = try Directory.open(path: temporary.path("a/b/c/d"))
    try d.rename("e", to: "e", in: temporary.directory)
    try temporary.directory.removeTree("a")
    #expect(failure { try cursor.ascend(to: 4) }?.isMissing == true)
    try cursor.ascend(to: 0)
    #expect(try active(cursor) == ["e"])
  }

  @Test func refusesLinksAndUnexpectedDirectories() throws {
    var cursor = DirectoryCursor(root: try Directory.open(path: temporary.path))
    let (a, other) = try (temporary.directory.status("a"), temporary.directory.status())
    try cursor.descend("a", a.identity)
    try cursor.ascend(to: 0)
    let error = failure { try cursor.descend("a", other.identity) }
    #expect(error?.number == ESTALE && error?.path == temporary.path("a"))
    #expect(cursor.depth == 0)
    try temporary.directory.createLink("link", to: "a")
    #expect(failure { try cursor.descend("link") } != nil)
    #expect(failure { try cursor.descend("none") }?.isMissing == true)
    #expect(try active(cursor) == ["a", "link"])
  }

  @Test func theRootIsReachedAfterAnyFailure() throws {
    for first in 1...60 {
      let plan = Faults.Plan(failing: [.open, .status], at: first, number: EIO)
      var cursor = DirectoryCursor(root: try Directory.open(path: temporary.path), limit: 2)
      Faults.inject(plan) {
        for (depth, name) in names.enumerated() where cursor.depth == depth {
          _ = failure { try cursor.descend(name) }
        }
        for depth in (0..<6).reversed() { _ = failure { try cursor.ascend(to: depth) } }
      }
      #expect(try active(cursor) == ["a"], "call \(first) failing")
      if !plan.hasFired { return }
    }
    Issue.record("the plan fired in each round")
  }
}
