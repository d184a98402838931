import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Archives and backups that another program writes while they are read: contents have no
/// checksums, so only the time and size of the file show that any of them may be wrong.
struct ChangingSourceTests {
  private typealias Archives = ArchiveSourceTests

  @Test(arguments: ["a.tar", "a.zip"], [false, true])
  func anArchiveThatChangesIsSuspect(name: String, isWritten: Bool) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("one", at: "a")
    try directory.write("two", at: "b")
    try Archives.run("tar -cf a.tar a b; zip -q a.zip a b", in: directory)
    var source = try ArchiveSource(try ArchiveFile(path: directory.path(ByteString(name))))
    _ = try source.next()
    if isWritten { try Archives.run("touch -d 2001-02-03 \(name)", in: directory) }
    var (found, count) = (InterchangeError?.none, 1)
    do throws(InterchangeError) {
      while try source.next() != nil { count += 1 }
    } catch { found = error }
    #expect(count == 2)
    #expect((found?.kind == .damaged && found?.isSuspect == true) == isWritten)
    #expect(found?.reason == (isWritten ? "it changed while it was read" : nil))
  }

  @Test(arguments: [false, true]) func anAndroidBackupThatChangesIsSuspect(isWritten: Bool) throws {
    let directory = try TemporaryDirectory("archive")
    try Archives.run(
      """
      mkdir -p apps/com.example.app/f
      echo text > apps/com.example.app/f/x
      tar --format=ustar -cf tar apps/com.example.app/f/x
      { printf 'ANDROID BACKUP\\n5\\n0\\nnone\\n'; cat tar; } > a.ab
      """, in: directory)
    let reader = try AndroidBackupFixture.open(path: directory.string + "/a.ab")
    #expect(try reader.next()?.joinedPath == "apps/com.example.app/data/files/x")
    if isWritten { try Archives.run("touch -d 2001-02-03 a.ab", in: directory) }
    var found: InterchangeError?
    do throws(InterchangeError) {
      while try reader.next() != nil {}
    } catch { found = error }
    #expect((found?.kind == .damaged && found?.isSuspect == true) == isWritten)
  }

  @Test(arguments: [false, true]) func aBackupThatChangesIsNamed(isWritten: Bool) throws {
    let item = MobileSyncFixture.Item(
      "AppDomain-com.example.app", "Documents/a", .file([1, 2, 3]))
    let directory = try MobileSyncFixture([item]).write()
    var source = try MobileSyncSource(try MobileSyncBackup(path: directory.path))
    if isWritten { try Archives.run("touch -d 2001-02-03 Manifest.plist", in: directory) }
    var count = 0
    while try source.next() != nil { count += 1 }
    #expect(count == 1)
    let skipped = source.skipped
    #expect(skipped.entryCount == (isWritten ? 1 : 0))
    #expect(skipped.listed.map(\.path) == (isWritten ? ["Status.plist"] : []))
  }

  /// The files of `.xcappdata` are read one by one: only the changed one is not imported.
  @Test(arguments: [false, true]) func aFileOfAnAppThatChangesIsDamaged(isWritten: Bool) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(
      "<plist><dict><key>CFBundleIdentifier</key><string>a.b</string></dict></plist>",
      at: "x.xcappdata/AppDataInfo.plist")
    try directory.write("text", at: "x.xcappdata/AppData/f")
    var source = try XcodeDataSource(path: directory.path("x.xcappdata"))
    while let entry = try source.next(), entry.kind == .directory {}
    if isWritten { try Archives.run("touch -d 2001-02-03 x.xcappdata/AppData/f", in: directory) }
    var (found, count, buffer) = (InterchangeError?.none, 1, [UInt8](repeating: 0, count: 100))
    do {
      while count > 0 { count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) } }
    } catch let error as InterchangeError { found = error }
    #expect((found?.kind == .damagedEntry) == isWritten)
    #expect(found?.reason == (isWritten ? "it changed while it was read" : nil))
  }
}
