import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Backups that another implementation wrote are read.
@Suite(.enabled(if: AndroidBackupProgram.isAvailable)) struct AndroidBackupReadingTests {
  private typealias Fixture = AndroidBackupFixture

  private func expectEntries(of reader: AndroidBackupReader) throws {
    let found = try Fixture.contents(of: reader)
    #expect(found.map(\.entry.joinedPath) == Fixture.logicalPaths.map { ByteString($0) })
    for ((entry, content), expected) in zip(found, Fixture.entries) {
      #expect(Fixture.hex(content) == expected.content)
      #expect(entry.permissions == UInt16(expected.mode))
      #expect(entry.modified == Timestamp(seconds: Int64(expected.mtime)))
      #expect((entry.kind == .directory) == (expected.type == "5"))
    }
    #expect(reader.skipped.isEmpty)
    let manifest = try #require(reader.manifests[ByteString(Fixture.package)])
    #expect(manifest.versionCode == 42)
    #expect(manifest.certificates == ["3082ABCD"])
  }

  @Test(arguments: 1...5, [true, false])
  func readsEveryVersion(version: Int, isCompressed: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.string + "/backup.ab"
    try AndroidBackupProgram.make(
      Fixture.entries, at: path, version: version, isCompressed: isCompressed)
    let reader = try Fixture.open(path: path)
    #expect(reader.header.version == version)
    try expectEntries(of: reader)
  }

  @Test(arguments: [true, false], ["secret", "pässwörd €"])
  func readsEncryptedBackups(isCompressed: Bool, password: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.string + "/backup.ab"
    try AndroidBackupProgram.make(
      Fixture.entries, at: path, isCompressed: isCompressed, password: password, rounds: 1000)
    try expectEntries(of: Fixture.open(path: path, password: password))
  }

  /// Before Android 4.4, PBKDF2 used the low eight bits of each character.
  @Test(arguments: [AndroidBackupProgram.Characters.low, .mixed])
  func readsKeysOfOlderSystems(characters: AndroidBackupProgram.Characters) throws {
    let directory = try TemporaryDirectory()
    let path = directory.string + "/backup.ab"
    for version in [1, 2] {
      try AndroidBackupProgram.make(
        Fixture.entries, at: path, version: version, password: "pässwörd", characters: characters,
        rounds: 1000)
      try expectEntries(of: Fixture.open(path: path, password: "pässwörd"))
    }
  }

  @Test func refusesAWrongOrMissingPassword() throws {
    let directory = try TemporaryDirectory()
    let path = directory.string + "/backup.ab"
    try AndroidBackupProgram.make(Fixture.entries, at: path, password: "secret", rounds: 1000)
    let wrong = #expect(throws: InterchangeError.self) {
      try Fixture.open(path: path, password: "Secret")
    }
    #expect(wrong?.kind == .wrongKey)
    #expect(wrong?.description == "cannot read the Android backup '\(path)': the password is wrong")
    let none = #expect(throws: InterchangeError.self) { try Fixture.open(path: path) }
    #expect(none?.kind == .keyRequired)
  }

  /// The content of a file need not be read, and an unknown tree is kept.
  @Test func skipsUnreadContent() throws {
    let directory = try TemporaryDirectory()
    let path = directory.string + "/backup.ab"
    try AndroidBackupProgram.make(
      Fixture.entries + [Fixture.file("apps/x/zz/file", "new")], at: path)
    let reader = try Fixture.open(path: path)
    var paths: [ByteString] = []
    while let entry = try reader.next() { paths.append(entry.joinedPath) }
    #expect(
      paths == Fixture.logicalPaths.map { ByteString($0) } + ["folders/android-backup/x/zz/file"])
  }

  /// A program that packs a directory with `tar` lists directories that Android does not list.
  @Test func acceptsDirectoriesAboveTheTrees() throws {
    let directory = try TemporaryDirectory()
    let path = directory.string + "/backup.ab"
    let names = ["apps", "apps/com.example.app", "apps/com.example.app/f", "shared"]
    try AndroidBackupProgram.make(names.map { Fixture.directory($0) }, at: path)
    let reader = try Fixture.open(path: path)
    #expect(try reader.next()?.joinedPath == "apps/com.example.app/data/files")
    #expect(try reader.next() == nil)
    #expect(reader.skipped.isEmpty)
  }

  /// Returns an uncompressed member with a changed header.
  private func member(
    _ name: ByteString, _ content: [UInt8], changing change: (inout [UInt8]) -> Void = { _ in }
  ) -> [UInt8] {
    var block = AndroidTarHeader(
      prefix: "", path: name, isDirectory: false, size: UInt64(content.count), permissions: 0o644,
      owner: 0, group: 0, modified: 7
    ).encoded()
    change(&block)
    block.replaceSubrange(148..<156, with: [UInt8](repeating: 0x20, count: 8))
    let digits = String(block.reduce(0) { $0 + Int($1) }, radix: 8)
    let sum = String(repeating: "0", count: 6 - digits.count) + digits + "\0 "
    block.replaceSubrange(148..<156, with: Array(sum.utf8))
    let padding = AndroidTarHeader.padding(after: UInt64(content.count))
    return block + content + [UInt8](repeating: 0, count: padding)
  }

  private func read(_ members: [[UInt8]]) throws -> (reader: AndroidBackupReader, [ForeignEntry]) {
    let start = Array("ANDROID BACKUP\n5\n0\nnone\n".utf8)
    let end = [UInt8](repeating: 0, count: 1024)
    let reader = try Fixture.open(start + members.flatMap(\.self) + end)
    return (reader, try Fixture.contents(of: reader).map(\.entry))
  }

  /// GNU tar writes a time before 1970 as a negative number in base 256.
  @Test func readsTimesBefore1970() throws {
    let (reader, entries) = try read([
      member("apps/a.b/f/old", [1]) { block in
        block.replaceSubrange(136..<148, with: [UInt8](repeating: 0xff, count: 11) + [0x9c])
      },
      member("apps/a.b/f/new", [2]),
    ])
    #expect(entries.map(\.modified) == [Timestamp(seconds: -100), Timestamp(seconds: 7)])
    #expect(reader.skipped.isEmpty)
  }

  /// The map of a sparse file from GNU tar is not mistaken for the beginning of its content.
  @Test func namesSparseFiles() throws {
    let records = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    let (reader, entries) = try read([
      member("pax", Array(records.utf8)) { $0[156] = UInt8(ascii: "x") },
      member("apps/a.b/f/sparse", [UInt8](repeating: 0x30, count: 600)),
      member("apps/a.b/f/good", [2]),
    ])
    #expect(entries.map(\.joinedPath) == ["apps/a.b/data/files/good"])
    #expect(reader.skipped.entryCount == 1)
    #expect(reader.skipped.listed.first?.path == "apps/a.b/f/sparse")
  }

  /// The map of a sparse file with many parts continues in blocks after the header.
  @Test func skipsTheMapOfASparseFile() throws {
    var map = [UInt8](repeating: 0x31, count: 1024)
    (map[504], map[512 + 504]) = (1, 0)
    let sparse = member("apps/a.b/f/sparse", [UInt8](repeating: 0x30, count: 600)) { block in
      (block[156], block[482]) = (UInt8(ascii: "S"), 1)
    }
    let (reader, entries) = try read([
      Array(sparse[..<512]) + map + sparse[512...], member("apps/a.b/f/good", [2]),
    ])
    #expect(entries.map(\.joinedPath) == ["apps/a.b/data/files/good"])
    #expect(reader.skipped.listed.map(\.path) == ["apps/a.b/f/sparse"])
  }

  private func record(_ key: String, _ value: String) -> String {
    let rest = key.utf8.count + value.utf8.count + 3
    return "\(rest + 2) \(key)=\(value)\n"
  }

  /// Attributes are imported; those in another form, and access control lists, are reported.
  @Test func readsAttributesAndReportsDroppedOnes() throws {
    func extended(_ records: String...) -> [UInt8] {
      member("pax", Array(records.joined().utf8)) { $0[156] = UInt8(ascii: "x") }
    }
    let (reader, entries) = try read([
      extended(
        record("SCHILY.xattr.user.note", "a=\0"), record("SCHILY.xattr.user.a", "1"),
        record("LIBARCHIVE.xattr.user.note", "YT0A")),
      member("apps/a.b/f/rich", [1]),
      extended(record("LIBARCHIVE.xattr.user.note", "YT0A")), member("apps/a.b/f/other", [1]),
      extended(record("SCHILY.acl.access", "user::rw-")), member("apps/a.b/f/list", [1]),
      member("apps/a.b/f/good", [2]),
    ])
    #expect(
      entries.map(\.attributes) == [
        [
          .init(name: "user.a", value: [0x31]), .init(name: "user.note", value: [0x61, 0x3d, 0]),
        ], [], [], [],
      ])
    #expect(reader.skipped.listed.map(\.path) == ["apps/a.b/f/other", "apps/a.b/f/list"])
    #expect(reader.skipped.propertyCount == 2 && reader.skipped.entryCount == 0)
  }
}
