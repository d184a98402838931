import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Notes on more paths than a snapshot has room for.
@Suite struct NoteBoundTests {
  private static func remarks(_ count: Int, in folder: ByteString) -> [PathRemark] {
    (0..<count).map {
      PathRemark(path: folder.appending(ByteString("sub/file \($0)")), remark: "permission denied")
    }
  }

  @Test func fewAreAllKept() {
    let notes = NoteBound.keep(Self.remarks(3, in: "folders/a"))
    #expect(notes.map(\.path) == (0..<3).map { ByteString("folders/a/sub/file \($0)") })
    #expect(notes.allSatisfy { $0.note == "permission denied" })
  }

  @Test func manyAreToldOfAsOne() throws {
    let all = Self.remarks(40_000, in: "folders/a") + Self.remarks(7, in: "apps/org.example.b")
    let notes = NoteBound.keep(all)
    #expect(notes.count < 32_000 && notes.count > 10_000, "\(notes.count)")
    #expect(notes.suffix(2).map(\.path) == ["apps/org.example.b", "folders/a"])
    let left = 40_000 - (notes.count - 2)
    #expect(notes.suffix(2).map(\.note).first?.hasPrefix("7 more in it") == true)
    #expect(notes.last?.note.hasPrefix("\(left) more in it") == true)
    // With '--delete' nothing of it is taken for gone, whether it was named or not.
    let rig = try Rig(inMemory: true)
    try rig.folder.write("text", at: "tree/file")
    var snapshot = try #require(try rig.backup().snapshot).snapshot
    snapshot.unreadable = notes
    for path: ByteString in ["folders/a/sub/file 3", "folders/a/sub/file 39999", "folders/a/x"] {
      #expect(snapshot.reasonToSpare(path) != nil, "\(path)")
    }
    #expect(snapshot.reasonToSpare("folders/other/file") == nil)
  }
}
