import Codecs
import SystemIO

@testable import ArchiveStore

/// The contents of the test vector `Tests/Vectors/repository-v1`: written by a session, with
/// expected lines that are derived from the input, not from restored data.
struct GoldenSource {
  private let session: WritingSession
  private let writer: ContentWriter
  /// The expected lines, unordered.
  private(set) var lines: [String] = []

  init(_ session: WritingSession) throws {
    self.session = session
    writer = try session.makeWriter()
  }

  /// The flag for files that dump(8) skips. Every file system supports it.
  static let noDump: UInt32 = 0x40

  // MARK: - The trees

  /// Stores everything and returns the root.
  mutating func writeAll(isSecond: Bool) throws -> TreeReference {
    let golden = try writeGolden(isSecond: isSecond)
    let app = try writeDirectory(
      "apps/org.example.App/data",
      [try file("apps/org.example.App/data/note.txt", .plain(Array("of an app\n".utf8)))])
    let data = directoryEntry("data", app, at: "apps/org.example.App/data")
    let apps = try writeDirectory("apps/org.example.App", [data])
    let identifier = directoryEntry("org.example.App", apps, at: "apps/org.example.App")
    let top = try writeDirectory("apps", [identifier])
    let golds = try writeDirectory(
      "folders", [directoryEntry("golden", golden, at: "folders/golden")])
    try writer.flush()
    return try writeDirectory(
      "",
      [directoryEntry("apps", top, at: "apps"), directoryEntry("folders", golds, at: "folders")])
  }

  private mutating func writeGolden(isSecond: Bool) throws -> TreeReference {
    let top: ByteString = "folders/golden"
    var entries = try plainFiles(top) + largeFiles(top, isSecond: isSecond) + specials(top)
    entries += try names(top) + attributed(top)
    for (name, below) in [
      ("empty directory", []), ("links", try links(top.appending("links"))),
      ("pages", try pages(top.appending("pages"))),
    ] {
      let path = top.appending(ByteString(name))
      let tree = try writeDirectory(path, below)
      entries.append(directoryEntry(ByteString(name), tree, at: path, permissions: 0o1751))
    }
    return try writeDirectory(top, entries)
  }

  private mutating func plainFiles(_ top: ByteString) throws -> [TreeEntry] {
    [
      try file(top.appending("empty"), .plain([])),
      try file(
        top.appending("small"), .plain(Array("small\n".utf8)), permissions: 0o4755, owner: 1000,
        group: 1001, modified: Timestamp(seconds: -1, nanoseconds: 999_999_999)),
      try file(
        top.appending("one blob"), .plain(Self.text(512 << 10)), permissions: 0o600,
        modified: Timestamp(seconds: 5_000_000_000)),
      try file(top.appending("just over one blob"), .plain(Self.text(512 << 10 + 1))),
    ]
  }

  private mutating func largeFiles(
    _ top: ByteString, isSecond: Bool
  ) throws -> [TreeEntry] {
    let magic = Array("SQLite format 3".utf8) + [0]
    var pages = magic + Self.text((5 << 20) - 16, seed: 2)
    if isSecond { pages[1 << 20] ^= 1 }
    let block = Self.text(4096, seed: 3)
    let sparse = [(1 << 20, Array(block)), ((3 << 20) + 4096, Array(block + block))]
    let every16MiB = (0..<257).map { ($0 << 24 + 8192, Array(block)) }
    return [
      try file(top.appending("parts"), .plain(Self.text(9 << 20, seed: 1))),
      try file(top.appending("database"), .plain(pages)),
      try file(
        top.appending("log and database"), .database(Self.text(40 << 10, seed: 4))),
      try file(top.appending("holes"), .sparse(sparse, size: 8 << 20)),
      try file(top.appending("only a hole"), .sparse([], size: 1 << 20)),
      try file(top.appending("lists of lists"), .sparse(every16MiB, size: 257 << 24)),
    ]
  }

  private mutating func specials(_ top: ByteString) throws -> [TreeEntry] {
    let device = TreeEntry.DeviceNumber(major: 1, minor: 3)
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 1)
    return try [
      ("fifo", .fifo, 0o620), ("socket", .socket, 0o755),
      ("character device", .characterDevice(device), 0o666),
      ("block device", .blockDevice(TreeEntry.DeviceNumber(major: 259, minor: 70_000)), 0o640),
      ("link", .symlink(target: "links/first"), nil),
      ("dangling", .symlink(target: ByteString(Array("/no where/".utf8) + [0xff])), nil),
    ].map { (name: ByteString, node: Node, permissions: UInt16?) in
      try add(
        TreeEntry(name: name, node: node, permissions: permissions, modified: time), at: top)
    }
  }

  private mutating func names(_ top: ByteString) throws -> [TreeEntry] {
    let names: [ByteString] = [
      "a\nnewline", "-n", " space ", "back\\slash", "caf\u{e9}", "cafe\u{301}",
      ByteString([0xff, 0xfe, 0x80]), ByteString([UInt8](repeating: 0x78, count: 255)),
    ]
    return try names.map { name in
      try file(top.appending(name), .plain(Array("named\n".utf8) + name.bytes))
    }
  }

  private mutating func attributed(_ top: ByteString) throws -> [TreeEntry] {
    let acl: [UInt8] = [
      2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 0xfe, 0xff, 0, 0, 4, 0, 4, 0, 255,
      255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255,
    ]
    let attributes: [(ByteString, [UInt8])] = [
      ("system.posix_acl_access", acl), ("user.empty", []),
      ("user.inline", Self.text(512, seed: 5)), ("user.value", Self.text(3000, seed: 6)),
    ]
    var later = try file(top.appending("of a later version"), .plain(Array("later\n".utf8)))
    var date = CBOREncoder()
    date.integer(1_700_000_000)
    var nested = CBOREncoder()
    nested.beginArray(count: 2)
    nested.text("caf\u{e9}")
    nested.null()
    nested.endArray()
    later.flags = Self.noDump
    later.extensions = [
      TreeEntry.Extension(key: 128, value: date.finish()),
      TreeEntry.Extension(key: 200, value: nested.finish()),
    ]
    return [
      later,
      try file(
        top.appending("attributes"), .plain(Array("attributes\n".utf8)), attributes: attributes),
    ]
  }

  private mutating func links(_ top: ByteString) throws -> [TreeEntry] {
    let group = top.appending("first")
    return try ["first", "second", "third"].map { name in
      try file(top.appending(ByteString(name)), .plain(Array("linked\n".utf8)), linkGroup: group)
    }
  }

  /// Makes a directory of two pages: 256 entries are followed by one whose name's hash begins with
  /// 12 zero bits.
  private mutating func pages(_ top: ByteString) throws -> [TreeEntry] {
    var names = (0..<300).map { ByteString("entry-\($0 + 1000)") }
    let boundary = (0...).lazy.map { ByteString("entry-1290-\($0)") }.first { name in
      name.withSpan { Blake2b.hash($0) }.leadingZeroBitCount >= 12
    }
    if let boundary { names.append(boundary) }
    return try names.map { try add(TreeEntry(name: $0, node: .fifo), at: top) }
  }

  // MARK: - Entries and their lines

  private enum Body {
    case plain([UInt8])
    case database([UInt8])
    case sparse([(offset: Int, bytes: [UInt8])], size: Int)
  }

  private mutating func file(
    _ path: ByteString, _ body: Body, permissions: UInt16? = nil, owner: UInt32 = 0,
    group: UInt32 = 0, modified: Timestamp = Timestamp(seconds: 1_700_000_000, nanoseconds: 7),
    attributes: [(name: ByteString, value: [UInt8])] = [], linkGroup: ByteString? = nil
  ) throws -> TreeEntry {
    let content: Content
    var blocks = GoldenBlocks()
    switch body {
    case .plain(let bytes):
      blocks.add(bytes, at: 0)
      content = try writer.storeFile(logicalPath: path, bytes: bytes)
    case .database(let bytes):
      blocks.add(bytes, at: 0)
      content = try writer.storeFile(
        logicalPath: path, bytes: bytes, hints: FileHints(isDatabase: true))
    case .sparse(let runs, let size):
      for run in runs { blocks.add(run.bytes, at: run.offset) }
      content = try writer.storeFile(logicalPath: path) { file in
        var end = 0
        for run in runs {
          try file.appendHole(length: UInt64(run.offset - end))
          try file.append(run.bytes)
          end = run.offset + run.bytes.count
        }
        try file.appendHole(length: UInt64(size - end))
      }
    }
    let entry = TreeEntry(
      name: path.lastComponent ?? "", node: .file(content), permissions: permissions, owner: owner,
      group: group, modified: modified,
      attributes: try attributes.map { try writer.makeAttribute(name: $0.name, value: $0.value) },
      linkGroup: linkGroup)
    lines.append(
      GoldenLine.line(
        entry, path: path, detail: "\(content.size) \(blocks.digest.hex)", attributes: attributes))
    return entry
  }

  private mutating func add(_ entry: TreeEntry, at directory: ByteString) throws -> TreeEntry {
    let path = directory.appending(entry.name)
    lines.append(GoldenLine.line(entry, path: path, detail: GoldenLine.detail(entry.node)))
    return entry
  }

  private mutating func directoryEntry(
    _ name: ByteString, _ tree: TreeReference, at path: ByteString, permissions: UInt16? = nil
  ) -> TreeEntry {
    let entry = TreeEntry(
      name: name, node: .directory(tree), permissions: permissions,
      modified: Timestamp(seconds: 1_600_000_000, nanoseconds: 123_456_789))
    lines.append(GoldenLine.line(entry, path: path, detail: "-"))
    return entry
  }

  private func writeDirectory(_ path: ByteString, _ entries: [TreeEntry]) throws -> TreeReference {
    try session.storeTree(entries.sorted { $0.name < $1.name })
  }

  /// Returns bytes that compress well and do not repeat.
  private static func text(_ count: Int, seed: Int = 0) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 1024)
    var number = seed * 1_000_000
    while bytes.count < count {
      bytes += Array("\(number)".utf8)
      bytes += [UInt8](repeating: UInt8(0x41 + number % 26), count: 1000)
      number += 1
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
