import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Backups that are written here and then read by the reader, and their form.
struct MobileSyncSinkTests {
  private static var device: MobileSyncDevice {
    var device = MobileSyncDevice()
    (device.name, device.identifier, device.osVersion) = ("Ada", "00AB", "15.8")
    device.madeAt = Timestamp(seconds: 1_700_000_000)
    device.apps = [.init(identifier: "com.example.app", build: "42")]
    return device
  }

  private func entry(
    _ path: String, _ kind: ForeignEntry.Kind, attributes: [ForeignEntry.Attribute] = []
  ) -> ForeignEntry {
    ForeignEntry(
      path: ByteString(path).components, kind: kind, permissions: 0o640, owner: 501, group: 20,
      modified: Timestamp(seconds: 1_600_000_000), attributes: attributes)
  }

  private func write(
    _ entries: [(ForeignEntry, [UInt8])], to path: ByteString, keys: MobileSyncKeys? = nil
  ) throws -> SkippedEntries {
    var sink = try MobileSyncSink(path: path, device: Self.device, keys: keys)
    for (entry, content) in entries {
      try sink.add(entry)
      for start in stride(from: 0, to: content.count, by: 7) {
        try content[start..<min(start + 7, content.count)].withUnsafeBytes { try sink.write($0) }
      }
    }
    try sink.finish()
    return sink.skipped
  }

  @Test func writtenBackupsAreRead() throws {
    let target = try TemporaryDirectory("itunes")
    let path = target.path("backup")
    let attributes: [ForeignEntry.Attribute] = [
      .init(name: "user.com.example.a", value: [1, 2]),
      .init(name: "user.sandboxctl.protection-class", value: Array("1".utf8)),
    ]
    let content = (0..<100).map { UInt8($0) }
    let data = "apps/com.example.app/data"
    let entries: [(ForeignEntry, [UInt8])] = [
      (entry("", .directory), []), (entry("apps", .directory), []),
      (entry("apps/com.example.app", .directory), []),
      (entry(data, .directory), []),
      (entry(data + "/Documents", .directory), []),
      (entry(data + "/Documents/a", .file(size: 100), attributes: attributes), content),
      (
        entry(data + "/Documents/b", .hardLink(to: ByteString(data + "/Documents/a").components)),
        []
      ),
      (entry(data + "/Documents/empty", .file(size: 0)), []),
      (entry(data + "/Documents/link", .symlink(target: "/x/y")), []),
      (entry("apps/com.example.app/extensions/com.example.app.e/data/x", .file(size: 2)), [1, 2]),
      (entry("folders/HomeDomain/Library/y", .file(size: 3)), [1, 2, 3]),
      (entry("groups/group.example/deep/er/z", .file(size: 1)), [9]),
    ]
    let skipped = try write(entries, to: path)
    #expect(skipped.isEmpty, "\(skipped.listed)")
    let outcome = try MobileSyncFixture.read(path)
    #expect(outcome.reasons == [] && outcome.damaged == [:])
    for (entry, content) in entries where !entry.path.isEmpty && entry.path != ["apps"] {
      if entry.path == ["apps", "com.example.app"] { continue }
      let read = try #require(outcome.entries[entry.joinedPath], "\(entry.joinedPath)")
      if case .hardLink = entry.kind {
        #expect(read.content == (0..<100).map { UInt8($0) })
        continue
      }
      #expect(read.entry == entry)
      #expect(read.content == content)
    }
    // The parent directories, which were not given.
    for path in ["groups/group.example", "groups/group.example/deep/er", "folders/HomeDomain"] {
      #expect(outcome.entries[ByteString(path)]?.entry.kind == .directory, "\(path)")
    }
    let backup = try MobileSyncBackup(path: path)
    #expect(backup.device.name == "Ada" && backup.device.identifier == "00AB")
    #expect(backup.device.madeAt == Timestamp(seconds: 1_700_000_000))
    #expect(backup.device.apps == Self.device.apps)
  }

  /// The directories above containers have no entry in a backup, but they are not reported, because
  /// nothing is missing without them.
  @Test func directoriesAboveContainersAreNotNamed() throws {
    let target = try TemporaryDirectory("itunes")
    let paths = [
      "apps", "apps/com.example.app", "apps/com.example.app/extensions",
      "apps/com.example.app/extensions/com.example.app.e", "folders", "groups",
    ]
    let skipped = try write(
      paths.map { (entry($0, .directory), []) } + [
        (entry("apps/com.example.app/extensions/com.example.app.e/data", .directory), []),
        (entry("apps/com.example.app/bundle", .directory), []), (entry("other", .directory), []),
      ], to: target.path("backup"))
    // Bundles are counted separately.
    #expect(skipped.listed.map(\.path) == ["other"])
    let manifest = try PropertyList(reading: target.read("backup/Manifest.plist"))
    let listed = manifest["Applications"]?["com.example.app.e"]
    #expect(listed?["ContainerContentClass"] == .string("Data/PluginKitPlugin"))
  }

  private static func keys(_ password: String) -> MobileSyncKeys {
    MobileSyncKeys(
      for: BackupPassword(SecretBytes(copying: Array(password.utf8).span)), firstRounds: 3,
      rounds: 2)
  }

  /// Contents of all sizes around the block size, with and without a SHA-1, of each class.
  @Test func encryptedBackupsAreRead() throws {
    let target = try TemporaryDirectory("itunes")
    let path = target.path("backup")
    var entries: [(ForeignEntry, [UInt8])] = [
      (entry("apps/com.example.app/data", .directory), [])
    ]
    for place in ["apps/com.example.app/data", "folders/HomeDomain", "groups/g"] {
      for (index, size) in [0, 1, 6, 7, 15, 16, 17, 31, 32, 33, 1000].enumerated() {
        // The usual class has no attribute.
        let attributes: [ForeignEntry.Attribute] =
          [0, 3].contains(index % 5)
          ? [] : [.init(name: MobileSyncSource.protectionAttribute, value: digits(index % 5))]
        let item = entry(
          place + "/\(size)", .file(size: UInt64(size)), attributes: attributes)
        entries.append((item, [UInt8](repeating: 7, count: size)))
      }
    }
    entries.append((entry("groups/h/link", .hardLink(to: ["groups", "g", "1000"])), []))
    let skipped = try write(entries, to: path, keys: Self.keys("word"))
    #expect(skipped.isEmpty, "\(skipped.listed)")
    let outcome = try MobileSyncFixture.read(path, password: "word")
    #expect(outcome.reasons == [] && outcome.damaged == [:])
    for (entry, content) in entries {
      let read = try #require(outcome.entries[entry.joinedPath], "\(entry.joinedPath)")
      if case .hardLink = entry.kind {
        #expect(read.content == [UInt8](repeating: 7, count: 1000))
        continue
      }
      #expect(read.entry == entry && read.content == content, "\(entry.joinedPath)")
    }
    for password in ["wrong", nil] {
      let refused = #expect(throws: InterchangeError.self) {
        try MobileSyncFixture.read(path, password: password)
      }
      #expect(refused?.kind == (password == nil ? .keyRequired : .wrongKey))
    }
    let backup = try MobileSyncBackup(
      path: path, password: BackupPassword(SecretBytes(copying: Array("word".utf8).span)))
    #expect(backup.isEncrypted && backup.device.name == "Ada")
  }

  private func digits(_ number: Int) -> [UInt8] { Array("\(number)".utf8) }

  /// An encrypted backup contains no plaintext, equal contents differ, and sizes are whole blocks.
  @Test func encryptedBackupsAreOpaque() throws {
    let target = try TemporaryDirectory("itunes")
    let path = target.path("backup")
    let content = [UInt8](repeating: 0x41, count: 64)
    var sink = try MobileSyncSink(
      path: path, device: Self.device, keys: Self.keys("word"))
    for name in ["a", "b"] {
      try sink.add(entry("groups/g/secret-\(name)", .file(size: 64)))
      try content.withUnsafeBytes { try sink.write($0) }
    }
    let temporary = try #require(try target.directory.names().first)
    let names = try Directory.open(path: target.path(temporary)).names()
    #expect(names.allSatisfy { $0.count == 2 }, "\(names)")
    try sink.finish()
    let manifest = try target.read("backup/Manifest.db")
    #expect(manifest.count % 16 == 0 && manifest.count > 4096)
    #expect(!String(decoding: manifest, as: UTF8.self).contains("secret"))
    var stored: Set<[UInt8]> = []
    for name in ["a", "b"] {
      let id = MobileRecord.fileID(
        domain: "AppDomainGroup-g", relativePath: ByteString("secret-\(name)"))
      stored.insert(
        try target.read(
          ByteString("backup").appending(ByteString(id.bytes.prefix(2))).appending(id)))
    }
    #expect(stored.count == 2 && stored.allSatisfy { $0.count == 80 })
  }

  /// A link target that is not valid text would be changed in the metadata, which is text.
  @Test func linksToInvalidTextAreReported() throws {
    let target = try TemporaryDirectory("itunes")
    let odd = entry("groups/g/x", .symlink(target: ByteString([0x61, 0xff])))
    let file = entry("groups/g/y", .file(size: 1))
    let skipped = try write([(odd, []), (file, [9])], to: target.path("backup"))
    #expect(skipped.entryCount == 1, "\(skipped.listed)")
    let entries = try MobileSyncFixture.read(target.path("backup")).entries
    #expect(entries["groups/g/x"] == nil && entries["groups/g/y"]?.content == [9])
  }

  /// A class that does not exist is not written, because no reader would find its key.
  @Test func unknownClassesAreNamed() throws {
    let target = try TemporaryDirectory("itunes")
    let odd = entry(
      "groups/g/x", .file(size: 1),
      attributes: [.init(name: MobileSyncSource.protectionAttribute, value: digits(11))])
    let skipped = try write([(odd, [9])], to: target.path("backup"), keys: Self.keys("word"))
    #expect(skipped.propertyCount == 1 && skipped.entryCount == 0, "\(skipped.listed)")
    let outcome = try MobileSyncFixture.read(target.path("backup"), password: "word")
    #expect(outcome.entries["groups/g/x"]?.content == [9])
  }

  /// Digests are written as Apple's programs write them: for system domains only.
  @Test func systemDomainsHaveDigests() throws {
    let target = try TemporaryDirectory("itunes")
    let path = target.path("backup")
    _ = try write(
      [
        (entry("apps/com.example.app/data/a", .file(size: 1)), [1]),
        (entry("folders/HomeDomain/a", .file(size: 1)), [1]),
      ], to: path)
    let database = try SQLiteDatabase.openImmutable(
      path: Host.realPath(path).appending("Manifest.db"))
    let rows = try database.prepare("SELECT domain, flags, file FROM Files")
    var digests: [ByteString: [UInt8]] = [:]
    while try rows.step() {
      guard rows.integer(1) == 1 else { continue }
      let file = try MobileFile(archive: rows.bytes(2) ?? [])
      digests[ByteString(rows.bytes(0) ?? [])] = file.digest ?? []
    }
    #expect(digests["AppDomain-com.example.app"] == [])
    #expect(digests["HomeDomain"] == MessageDigest.digest(of: [1].span, .sha1))
  }

  @Test func otherEntriesAreNamed() throws {
    let target = try TemporaryDirectory("itunes")
    let skipped = try write(
      [
        (entry("apps/com.example.app/bundle/X.app/x", .file(size: 2)), [1, 2]),
        (entry("apps/com.example.app/data/fifo", .fifo), []),
        (
          entry(
            "apps/com.example.app/data/f", .file(size: 1),
            attributes: [.init(name: "security.capability", value: [1])]), [3]
        ),
      ], to: target.path("backup"))
    #expect(skipped.entryCount == 2 && skipped.propertyCount == 1)
    let outcome = try MobileSyncFixture.read(target.path("backup"))
    #expect(outcome.entries["apps/com.example.app/data/f"]?.content == [3])
  }

  /// A device can have two containers of one app, and two apps can have an extension of one
  /// identifier: the files of the second one are reported and never mixed with those of the first.
  @Test(arguments: [nil, "x"]) func secondContainersAreNamed(password: String?) throws {
    let target = try TemporaryDirectory("itunes")
    let first = "apps/com.example.app"
    let second = "apps/com.example.app~1111"
    let skipped = try write(
      [
        (entry(first + "/data/a", .file(size: 1)), [1]),
        (entry(first + "/extensions/e.x/data/a", .file(size: 1)), [2]),
        (entry(second + "/data", .directory), []),
        (entry(second + "/data/a", .file(size: 2)), [8, 8]),
        (entry(second + "/data/b", .file(size: 2)), [9, 9]),
        (entry("apps/other/extensions/e.x/data/a", .file(size: 2)), [7, 7]),
        (
          entry("groups/g/link", .hardLink(to: ByteString(second + "/data/a").components)), []
        ),
      ], to: target.path("backup"), keys: password.map { Self.keys($0) })
    #expect(
      skipped.listed.map(\.path) == [
        "apps/com.example.app~1111/data", "apps/com.example.app~1111/data/a",
        "apps/com.example.app~1111/data/b", "apps/other/extensions/e.x/data/a",
        "AppDomainGroup-g/link",
      ])
    #expect(skipped.entryCount == 5)
    #expect(skipped.listed.first?.reason.contains("'apps/com.example.app/data'") == true)
    let outcome = try MobileSyncFixture.read(target.path("backup"), password: password)
    #expect(outcome.reasons == [])
    #expect(outcome.entries["apps/com.example.app/data/a"]?.content == [1])
    #expect(outcome.entries["apps/com.example.app/data/b"] == nil)
    #expect(outcome.entries["groups/g/link"] == nil)
  }

  /// A symbolic link can have several names, too.
  @Test(arguments: [nil, "x"]) func hardLinkedSymbolicLinksAreCopied(password: String?) throws {
    let target = try TemporaryDirectory("itunes")
    let data = "apps/com.example.app/data"
    let skipped = try write(
      [
        (entry(data + "/a", .symlink(target: "/x/y")), []),
        (entry(data + "/b", .hardLink(to: ByteString(data + "/a").components)), []),
      ], to: target.path("backup"), keys: password.map { Self.keys($0) })
    #expect(skipped.isEmpty)
    let outcome = try MobileSyncFixture.read(target.path("backup"), password: password)
    #expect(outcome.reasons == [])
    #expect(outcome.entries[ByteString(data + "/b")]?.entry.kind == .symlink(target: "/x/y"))
  }

  /// If only one of several containers of an app is exported, it becomes the container of the app.
  @Test func aSecondContainerIsExportedAlone() throws {
    let target = try TemporaryDirectory("itunes")
    let skipped = try write(
      [(entry("apps/com.example.app~1111/data/a", .file(size: 1)), [1])],
      to: target.path("backup"))
    #expect(skipped.isEmpty)
    let outcome = try MobileSyncFixture.read(target.path("backup"))
    #expect(outcome.entries["apps/com.example.app/data/a"]?.content == [1])
  }

  @Test func usedDirectoriesAndShortContentsAreRefused() throws {
    let target = try TemporaryDirectory("itunes")
    try target.write("x", at: "used/x")
    let used = #expect(throws: InterchangeError.self) {
      try write([], to: target.path("used"))
    }
    #expect(used?.kind == .unrepresentable)
    let short = #expect(throws: InterchangeError.self) {
      try write(
        [(entry("groups/g/x", .file(size: 2)), [1])], to: target.path("short"))
    }
    #expect(short?.reason.contains("1 bytes shorter") == true)
    // A failed export does not block the next one.
    #expect(try target.directory.names() == ["used"])
  }
}
