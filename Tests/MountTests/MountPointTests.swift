import SystemIO
import TestSupport
import Testing

@testable import Mount

struct MountPointTests {
  /// Another user replaces the directory after it was checked.
  @Test(arguments: ["directory", "link", "link above", "entries"])
  func aReplacedDirectoryIsRefused(replacement: String) throws {
    let temporary = try TemporaryDirectory("mount-point")
    _ = try Directory.make(path: temporary.path("above/view"))
    _ = try Directory.make(path: temporary.path("other/view"))
    let point = try MountPoint(temporary.path("above/view"))
    let opened = try point.open().status().identity
    let above = try temporary.directory.directory("above")
    #expect(try above.status("view").identity == opened)
    let other = try temporary.directory.directory("other")
    switch replacement {
    case "directory":
      try above.removeDirectory("view")
      try other.rename("view", to: "view", in: above)
    case "link":
      try above.removeDirectory("view")
      try above.createLink("view", to: "../other/view")
    case "link above":
      try temporary.directory.rename("above", to: "moved", in: temporary.directory)
      try temporary.directory.createLink("above", to: "moved")
    default: try temporary.write("x", at: "above/view/file")
    }
    let error = #expect(throws: OperationError.self) { _ = try point.open() }
    #expect(error?.code == .invalidTarget, "\(error as Any)")
  }

  @Test func anOpenPathLeadsToARenamedDirectory() throws {
    let temporary = try TemporaryDirectory("mount-point")
    let directory = try temporary.directory.makeDirectory("a")
    try temporary.directory.rename("a", to: "b", in: temporary.directory)
    _ = try temporary.directory.makeDirectory("a")
    guard let path = try directory.openPath() else { return }
    #expect(try Directory.open(path: path).status().identity == directory.status().identity)
    let again = try Directory.open(path: path.appending("../b"))
    #expect(try again.status().identity == directory.status().identity)
  }
}
