import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Reading of backups that another implementation wrote.
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

  /// Before Android 4.4, PBKDF2 took the low eight bits of each character.
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

  @Test func refusesAWrongPasswordAndNone() throws {
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

  /// A program that packs a directory with `tar` names directories that Android does not.
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
}
