import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Backups are written, and read by another implementation.
struct AndroidBackupWritingTests {
  private typealias Fixture = AndroidBackupFixture

  private var files: [(entry: ForeignEntry, content: [UInt8])] {
    [
      Fixture.file("apps/a.b/data/files/x", content: "text"),
      Fixture.file("apps/a.b/data/files/empty", content: ""),
      Fixture.file("apps/a.b/data/app_x/y", content: String(repeating: "z", count: 300_000)),
    ]
  }

  @Test(
    .enabled(if: AndroidBackupProgram.isAvailable), arguments: [true, false], [nil, "pässwörd"])
  func anotherProgramReadsTheBackup(isCompressed: Bool, password: String?) throws {
    let directory = try TemporaryDirectory()
    let bytes = try Fixture.write(files, isCompressed: isCompressed, password: password).bytes
    try directory.write(bytes, at: "backup.ab")
    let entries = try AndroidBackupProgram.read(
      directory.string + "/backup.ab", password: password)
    #expect(
      entries.map(\.name)
        == ["apps/a.b/_manifest", "apps/a.b/f/x", "apps/a.b/f/empty", "apps/a.b/r/app_x/y"])
    #expect(
      entries.map(\.content).dropFirst()
        == files.map { Fixture.hex($0.content) }[...])
    #expect(entries[1].mtime == 1_700_000_000)
    #expect(entries[1].mode == 0o644)
  }

  @Test(arguments: [nil, "secret"]) func restoresWhatItWrote(password: String?) throws {
    let paths = Fixture.logicalPaths.sorted { ByteString($0) < ByteString($1) }
    let entries = paths.map { path in
      Fixture.file(path, content: path.hasSuffix("_manifest") ? Fixture.manifest : path)
    }
    let (bytes, writer) = try Fixture.write(entries, password: password)
    #expect(writer.skipped.isEmpty)
    #expect(writer.unrestorablePackages.isEmpty)
    let found = try Fixture.contents(of: Fixture.open(bytes, password: password))
    #expect(found.map(\.entry) == entries.map(\.entry))
    #expect(found.map(\.content) == entries.map(\.content))
  }

  /// Each backup has its own salts and keys.
  @Test func encryptsDifferentlyEachTime() throws {
    let first = try Fixture.write(files, password: "secret").bytes
    let second = try Fixture.write(files, password: "secret").bytes
    #expect(first != second)
    #expect(first.starts(with: "ANDROID BACKUP\n5\n1\nAES-256\n".utf8))
    #expect(first.firstRange(of: "text".utf8) == nil)
  }

  @Test func writesLongAndForeignNamesAsAndroidDoes() throws {
    let names = [
      String(repeating: "d", count: 99), String(repeating: "d", count: 100),
      "é", String(repeating: "long/", count: 200) + "name",
    ]
    let entries = names.map { Fixture.file("apps/a.b/data/files/" + $0, content: "x") }
    let bytes = try Fixture.write(entries, isCompressed: false).bytes
    let found = try Fixture.contents(of: Fixture.open(bytes)).dropFirst()
    #expect(found.map(\.entry) == entries.map(\.entry))
    // The first name fits into a header with a prefix; the others need a pax header.
    let types = stride(from: 0, to: bytes.count - 512, by: 512).filter { start in
      bytes[(start + 24)...].dropFirst(257).starts(with: "ustar".utf8)
        && bytes[start + 24 + 156] == UInt8(ascii: "x")
    }
    #expect(types.count == 3)
  }

  /// Android restores a package only with its certificates, so a manifest without them is reported.
  @Test func reportsPackagesWithoutCertificates() throws {
    let known = AndroidManifest(package: "c.d", versionCode: 7, certificates: ["30"])
    let entries =
      files + [
        Fixture.file("apps/c.d/data/files/x", content: "c"),
        Fixture.file("apps/e.f/bundle/_manifest", content: "1\ne.f\n1\n1\n\n0\n1\nAB\n"),
      ]
    let (bytes, writer) = try Fixture.write(entries, manifests: ["c.d": known])
    #expect(writer.unrestorablePackages == ["a.b"])
    let reader = try Fixture.open(bytes)
    _ = try Fixture.contents(of: reader)
    #expect(reader.manifests["c.d"] == known)
    #expect(reader.manifests["a.b"] == AndroidManifest(package: "a.b"))
  }

  /// A manifest can no longer be written after data of its package.
  @Test func writesOneManifestForEachPackage() throws {
    let entries = [
      Fixture.file("apps/e.f/bundle/Base.apk", content: "PK"),
      Fixture.file("apps/e.f/bundle/_manifest", content: "1\ne.f\n1\n1\n\n0\n1\nAB\n"),
    ]
    let late = try Fixture.write(entries).writer
    #expect(late.skipped.listed.map(\.path) == ["apps/e.f/bundle/_manifest"])
    let known = AndroidManifest(package: "e.f", certificates: ["AB"])
    let (bytes, early) = try Fixture.write(entries, manifests: ["e.f": known])
    #expect(early.unrestorablePackages.isEmpty)
    #expect(early.skipped.entryCount == 1)
    #expect(try Fixture.contents(of: Fixture.open(bytes)).count == 2)
  }

  @Test func reportsEntriesThatAnAndroidBackupCannotStore() throws {
    let path: [ByteString] = ["apps", "a.b", "data", "files", "x"]
    let kinds: [ForeignEntry.Kind] = [
      .symlink(target: "y"), .hardLink(to: ["y"]), .fifo, .characterDevice(major: 1, minor: 3),
    ]
    var entries = kinds.map { (entry: ForeignEntry(path: path, kind: $0), content: [UInt8]()) }
    entries += ["groups/g/x", "folders/photos/x", "apps/a.b/revision/x", "other/x"].map {
      Fixture.file($0, content: "some content")
    }
    entries.append((ForeignEntry(path: [], kind: .directory), []))
    entries.append((ForeignEntry(path: ["apps", "a.b"], kind: .directory), []))
    entries.append(Fixture.file("apps/a.b/data/files/good", content: "good"))
    entries[entries.count - 1].entry.attributes = [.init(name: "user.x", value: [1])]
    let (bytes, writer) = try Fixture.write(entries)
    #expect(writer.skipped.entryCount == 8)
    #expect(writer.skipped.propertyCount == 1)
    let found = try Fixture.contents(of: Fixture.open(bytes))
    #expect(found.last?.content == Array("good".utf8))
    #expect(found.count == 2)
  }

  @Test func reportsTimesThatAnAndroidBackupCannotStore() throws {
    var entries: [(entry: ForeignEntry, content: [UInt8])] = []
    for (number, seconds) in [Int64(-1), 0, 8_589_934_591, 8_589_934_592].enumerated() {
      var file = Fixture.file("apps/a.b/data/files/\(number)", content: "text")
      file.entry.modified = Timestamp(seconds: seconds)
      entries.append(file)
    }
    let (bytes, writer) = try Fixture.write(entries)
    #expect(writer.skipped.entryCount == 0)
    #expect(
      writer.skipped.listed.map(\.path) == ["apps/a.b/data/files/0", "apps/a.b/data/files/3"])
    let times = try Fixture.contents(of: Fixture.open(bytes)).dropFirst().map(\.entry.modified)
    #expect(times.map(\.seconds) == [0, 0, 8_589_934_591, 8_589_934_591])
  }

  /// The quota counts everything in an app's backup except the end of the archive.
  @Test func measuresTheQuotaAsTheArchiveDoes() throws {
    let entries = [
      Fixture.file("apps/a.b/data/files/x", content: "text"),
      Fixture.file("apps/a.b/data/files/" + String(repeating: "n", count: 200), content: ""),
    ]
    let size = try Fixture.write(entries, isCompressed: false).bytes.count
    let header = "ANDROID BACKUP\n5\n0\nnone\n".utf8.count
    let manifest = AutoBackupQuota.size(
      package: "a.b", token: "", path: ["_manifest"], size: 24)
    let measured = entries.map { entry, content in
      AutoBackupQuota.size(
        package: "a.b", token: "f", path: Array(entry.path.dropFirst(4)),
        size: UInt64(content.count))
    }
    #expect(measured.reduce(manifest, +) == UInt64(size - header - 1024))
    #expect(AutoBackupQuota.bytes == 26_214_400)
  }
}
