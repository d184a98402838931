import Foundation
import SystemIO
import TestSupport
import Testing

/// A tree with everything that a careless backup loses.
enum OddTree {
  /// Makes the tree: unusual names, modes, times, links, holes, extended attributes, ACLs, special
  /// files, foreign owners and a deep path.
  static func make(in directory: TemporaryDirectory, at path: ByteString) throws {
    func write(_ bytes: [UInt8], _ name: ByteString) throws {
      try directory.write(bytes, at: path.appending(name))
    }
    try write([], "empty")
    try write(Array("text".utf8), "a\nnewline")
    try write([1], ByteString([0xff, 0xfe, UInt8(ascii: "x")]))
    try write([2], "caf\u{e9}")
    try write([3], "cafe\u{301}")
    try write([4], "-n")
    try write([5], "back\\slash")
    try write(Array(repeating: 9, count: 600_000), "large")
    try write(Seeded(1).randomBytes(9_000_000), "media/large.bin")
    try write(Array("in".utf8), "folder/inner/file")
    let root = try Directory.open(path: directory.path(path))
    try root.createDirectory("nothing in it", permissions: 0o1751)
    try makeLinks(root)
    try makeHole(root)
    try makeDeep(root)
    try setMetadata(root)
  }

  private static func makeLinks(_ root: borrowing Directory) throws {
    try root.createLink("link", to: "folder/inner/file")
    try root.createLink("dangling", to: "/no/where")
    try root.createHardLink("twin", to: "large", in: root)
    try root.createHardLink("zz-third", to: "large", in: root)
    try root.createSpecial("fifo", kind: .fifo, permissions: 0o620)
    try root.createSpecial("socket", kind: .socket, permissions: 0o755)
  }

  private static func makeHole(_ root: borrowing Directory) throws {
    let file = try root.create("sparse")
    try file.write(Array("begin".utf8))
    try file.seek(to: 8 << 20)
    try file.write(Array("middle".utf8))
    try file.truncate(to: 24 << 20)
  }

  private static func makeDeep(_ root: borrowing Directory) throws {
    var directory = try root.duplicate()
    for level in 0..<300 { directory = try directory.makeDirectory(ByteString("level-\(level)")) }
    try directory.create("bottom").write([1, 2, 3])
  }

  private static func setMetadata(_ root: borrowing Directory) throws {
    try root.attributes(of: "large").set("user.note", to: Array("small".utf8))
    try root.attributes(of: "folder").set("user.big", to: Array(repeating: 65, count: 3000))
    try root.setPermissions(0o4755, of: "empty")
    try root.setPermissions(0o400, of: "-n")
    try root.attributes(of: "large").set("system.posix_acl_access", to: accessList)
    if Host.userID == 0 { try root.setOwner(user: 1234, group: 4321, of: "back\\slash") }
    let old = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)
    try root.setModified(old, of: "link")
    try root.setModified(old, of: "fifo")
    try root.setModified(Timestamp(seconds: -5, nanoseconds: 1), of: "empty")
    try root.setModified(old, of: "folder")
  }

  /// An ACL in the kernel's form (acl(5)): the version, then tag, permissions and ID of each entry.
  /// The owner may write; a user given by number, the group and all others may read.
  private static let accessList: [UInt8] = {
    let entries: [(tag: UInt8, permissions: UInt8, id: UInt32)] = [
      (0x01, 6, .max), (0x02, 4, 65534), (0x04, 4, .max), (0x10, 4, .max), (0x20, 4, .max),
    ]
    return entries.reduce([2, 0, 0, 0]) { list, entry in
      list + [entry.tag, 0, entry.permissions, 0]
        + (0..<4).map { UInt8(truncatingIfNeeded: entry.id >> ($0 * 8)) }
    }
  }()

  /// Returns the record of each entry of a tree by path.
  static func listing(
    _ directory: TemporaryDirectory, _ path: ByteString
  ) throws -> [ByteString: TreeRecord] { try TreeRecord.all(in: directory, path) }
}

extension Seeded {
  /// Returns random bytes of a generator that is used once.
  func randomBytes(_ count: Int) -> [UInt8] {
    var generator = self
    return generator.bytes(count)
  }
}
