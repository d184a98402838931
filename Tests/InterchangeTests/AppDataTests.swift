import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Packages with data (.ipa) and Xcode app data (.xcappdata).
struct AppDataTests {
  private let directory: TemporaryDirectory
  private let store: Fixture

  init() throws {
    directory = try TemporaryDirectory("appdata")
    store = try Fixture()
  }

  private static let app = AppIdentity(
    identifier: "com.example.app", version: "1.2", build: "42")

  /// The data of an app with a bundle, with times in whole seconds.
  private static func items() -> [ListedSource.Item] {
    var random = Seeded(4)
    let data = "apps/com.example.app/data"
    var secrets = ListedSource.Item.entry(data + "/private", .directory)
    secrets.entry.permissions = 0o750
    let items: [ListedSource.Item] = [
      .entry(data, .directory), .file(data + "/Documents/large", random.bytes(200_000)),
      .file(data + "/Library/empty", ""), .entry(data + "/tmp", .directory), secrets,
      .file(data + "/private/note", "secret"), .file(data + "/caf\u{e9}", "one"),
      .file(data + "/cafe\u{301}", "other"),
      .entry(data + "/Documents/link", .symlink(target: "../../elsewhere")),
      .file("apps/com.example.app/bundle/App.app/Info.plist", list),
      .file("apps/com.example.app/bundle/App.app/App", "code"),
      .file("apps/com.example.app/bundle/iTunesArtwork", "image"),
    ]
    return items.map { item in
      var item = item
      item.entry.modified = Timestamp(seconds: 1_600_000_000)
      return item
    }
  }

  private static let list = """
    <plist><dict><key>CFBundleIdentifier</key><string>com.example.app</string>
    <key>CFBundleShortVersionString</key><string>1.2</string>
    <key>CFBundleVersion</key><string>42</string></dict></plist>
    """

  private func imported(_ items: [ListedSource.Item]) throws -> ImportReport {
    var source = ListedSource(items)
    return try store.run(&source) { $0.placement.prefix = "" }
  }

  /// Checks that two snapshots have the same entries below a path, apart from owners.
  private func expectSame(
    _ first: ImportReport, _ second: ImportReport, below top: ByteString, keepsOwners: Bool
  ) throws {
    func entries(_ report: ImportReport) throws -> [ByteString: TreeEntry] {
      try store.entries(report).filter { $0.key.isWithin(top) && $0.key != top }.mapValues {
        entry in
        var entry = entry
        if !keepsOwners { (entry.owner, entry.group) = (0, 0) }
        // The reference depends on the owners of the entries below.
        if case .directory = entry.node, !keepsOwners { entry.node = .fifo }
        return entry
      }
    }
    let (wanted, found) = (try entries(first), try entries(second))
    #expect(found.keys.sorted() == wanted.keys.sorted())
    for (path, entry) in wanted { #expect(found[path] == entry, "\(path)") }
  }

  // MARK: - Packages

  private func package(
    _ report: ImportReport, of top: ByteString = "apps/com.example.app"
  ) throws -> (bytes: [UInt8], skipped: SkippedEntries) {
    var bytes: [UInt8] = []
    var sink = try PackageDataSink(
      to: { span throws(InterchangeError) in bytes += span.indices.map { span[$0] } },
      app: Self.app)
    try store.export(report, of: top, below: top, to: &sink)
    return (bytes, sink.skipped)
  }

  private func open(_ bytes: [UInt8]) throws -> PackageDataSource {
    try directory.write(bytes, at: "app.ipa")
    return try PackageDataSource(ArchiveFile(path: directory.path("app.ipa")))
  }

  @Test func aPackageIsImportedAsItWas() throws {
    let first = try imported(Self.items())
    let (bytes, skipped) = try package(first)
    #expect(skipped.isEmpty, "\(skipped.listed)")
    var source = try open(bytes)
    let app = source.app
    #expect(app == Self.app)
    let second = try store.run(&source) { $0.placement.prefix = "" }
    #expect(second.isComplete, "\(second.skipped.listed)")
    try expectSame(first, second, below: "apps/com.example.app", keepsOwners: true)
    let record = try #require(second.snapshot.snapshot.apps.first)
    #expect(record.version == "1.2" && record.build == "42")
  }

  @Test func groupsOfAPackageAreContainers() throws {
    let bytes = try SnapFixture.zip([
      ("Payload/App.app/Info.plist", Array(Self.list.utf8)),
      ("Container/AppGroups/group.example/Library/x", [1]),
      ("Container/Documents/y", [2]), ("iTunesMetadata.plist", [3]),
      ("Container/../../evil", [4]), ("/etc/passwd", [5]),
    ])
    var source = try open(bytes)
    let outcome = try SnapFixture.read(&source)
    #expect(
      outcome.contents == [
        "apps/com.example.app/bundle/App.app/Info.plist": Array(Self.list.utf8),
        "groups/group.example/Library/x": [1], "apps/com.example.app/data/Documents/y": [2],
        "apps/com.example.app/bundle/iTunesMetadata.plist": [3],
        "apps/com.example.app/bundle/etc/passwd": [5],
      ])
    #expect(outcome.reasons.count == 1 && outcome.reasons[0].contains("'..'"))
  }

  /// 'Payload/x' and 'x' have the same logical path: the first one is imported, and the other one
  /// is reported.
  @Test func aNameInPayloadAndBesideItIsNotLost() throws {
    let bytes = try SnapFixture.zip([
      ("Payload/App.app/Info.plist", Array(Self.list.utf8)), ("Payload/x", [1]), ("x", [2]),
      ("y/a", [3]), ("Payload/y/b", [4]), ("y/c", [5]),
    ])
    var source = try open(bytes)
    let outcome = try SnapFixture.read(&source)
    let bundle: ByteString = "apps/com.example.app/bundle"
    #expect(outcome.contents[bundle.appending("x")] == [1])
    #expect(
      outcome.contents[bundle.appending("y/a")] == [3]
        && outcome.contents[bundle.appending("y/c")] == [5])
    #expect(outcome.contents.count == 4)
    #expect(
      outcome.reasons == [
        "x: 'Payload/x' has the same place, and is imported",
        "Payload/y/b: 'y' beside 'Payload' has the same place, and is imported",
      ])
  }

  /// A snapshot may contain the data without the bundle that names the app.
  @Test func aPackageWithoutABundleNamesItsApp() throws {
    let first = try imported(Self.items())
    let (bytes, skipped) = try package(first, of: "apps/com.example.app/data")
    #expect(skipped.isEmpty, "\(skipped.listed)")
    var source = try open(bytes)
    let app = source.app
    #expect(app == Self.app)
    let second = try store.run(&source) { $0.placement.prefix = "" }
    #expect(second.isComplete, "\(second.skipped.listed)")
    try expectSame(first, second, below: "apps/com.example.app/data", keepsOwners: true)
  }

  /// Even if only `iTunesMetadata.plist` names the app, the data before the damage is imported.
  @Test(arguments: [true, false]) func aPackageWithoutDirectoryIsImported(hasBundle: Bool) throws {
    let first = try imported(Self.items())
    let (bytes, _) =
      hasBundle ? try package(first) : try package(first, of: "apps/com.example.app/data")
    var source = try open(Array(bytes.dropLast(22)))
    let app = source.app
    #expect(app == Self.app)
    let second = try store.run(&source) { $0.placement.prefix = "" }
    #expect(second.damage?.reason.contains("directory at its end is missing") == true, "\(second)")
    let note = try store.bytes("apps/com.example.app/data/private/note", second)
    #expect(note == Array("secret".utf8))
  }

  /// Members that are not in a group with a valid name are reported, not lost.
  @Test func membersWithoutAGroupAreNamed() throws {
    let long = String(repeating: "g", count: 201)
    let bytes = try SnapFixture.zip([
      ("Payload/App.app/Info.plist", Array(Self.list.utf8)),
      ("Container/AppGroups/\(long)/x", [1]), ("Container/AppGroups/group.example/x", [2]),
    ])
    var source = try open(bytes)
    let outcome = try SnapFixture.read(&source)
    #expect(outcome.contents.count == 2)
    #expect(outcome.reasons.count == 1)
    let reason = ": it is in no directory of a valid group"
    #expect(outcome.reasons.allSatisfy { $0.hasSuffix("/x" + reason) }, "\(outcome.reasons)")
    var file = try open(
      SnapFixture.zip([
        ("Payload/App.app/Info.plist", Array(Self.list.utf8)), ("Container/AppGroups", [1]),
      ]))
    #expect(try SnapFixture.read(&file).reasons.count == 1)
  }

  @Test func aPackageWithoutAnAppIsRefused() throws {
    for members: [(name: String, bytes: [UInt8])] in [
      [("Container/x", [1])], [("Payload/App.app/Info.plist", [1, 2])],
      [("Payload/App.app/Sub/Info.plist", Array(Self.list.utf8))],
      [
        (
          "Payload/App.app/Info.plist",
          Array(
            "<plist><dict><key>CFBundleIdentifier</key><string>../x</string></dict></plist>".utf8)
        )
      ],
    ] {
      let bytes = try SnapFixture.zip(members)
      let error = #expect(throws: InterchangeError.self) { _ = try open(bytes) }
      #expect(error?.kind == .unknownFormat)
    }
    let error = #expect(throws: InterchangeError.self) { _ = try open([1, 2, 3]) }
    #expect(error?.kind == .unknownFormat)
  }

  @Test func entriesThatAPackageCannotStoreAreReported() throws {
    let report = try imported(
      Self.items() + [
        .file("apps/com.example.app/data/AppGroups/x", "x"),
        .file("apps/com.example.app/bundle/Container/x", "x"),
        .file("apps/com.example.app/extensions/com.example.app.e/data/x", "x"),
        .entry("apps/com.example.app/data/pipe", .fifo),
      ])
    let paths = try package(report).skipped.listed.map(\.path)
    for path: ByteString in [
      "apps/com.example.app/data/AppGroups/x", "apps/com.example.app/bundle/Container/x",
      "apps/com.example.app/extensions/com.example.app.e/data/x",
    ] {
      #expect(paths.contains(path), "\(path) in \(paths)")
    }
    #expect(paths.contains("Container/pipe"))
  }

  // MARK: - Xcode

  private func writeXcodeData(_ report: ImportReport) throws -> SkippedEntries {
    var sink = try XcodeDataSink(path: directory.path("x.xcappdata"), app: Self.app)
    let top: ByteString = "apps/com.example.app/data"
    try store.export(report, of: top, below: top, to: &sink)
    return sink.skipped
  }

  @Test func theDataOfXcodeIsImportedAsItWas() throws {
    var rich = ListedSource.Item.file("apps/com.example.app/data/rich", "x")
    rich.entry.attributes = [.init(name: "user.note", value: [1, 0, 2])]
    rich.entry.modified = Timestamp(seconds: 1_600_000_000, nanoseconds: 123_456_789)
    let first = try imported(
      Self.items() + [
        rich, .link("apps/com.example.app/data/twin", to: "apps/com.example.app/data/rich"),
      ]
    )
    let skipped = try writeXcodeData(first)
    #expect(skipped.isEmpty, "\(skipped.listed)")
    var source = try XcodeDataSource(path: directory.path("x.xcappdata"))
    let app = source.app
    #expect(app == Self.app)
    let second = try store.run(&source) { $0.placement.prefix = "" }
    #expect(second.isComplete, "\(second.skipped.listed)")
    try expectSame(first, second, below: "apps/com.example.app/data", keepsOwners: false)
    let error = #expect(throws: InterchangeError.self) { _ = try writeXcodeData(first) }
    #expect(error?.reason == "the directory is not empty")
  }

  @Test func holesStayHoles() throws {
    var item = ListedSource.Item.entry(
      "apps/com.example.app/data/sparse", .file(size: (1 << 40) + 100_003))
    item.parts = [.hole(1 << 39), .bytes([1, 2, 3]), .hole((1 << 39) + 100_000)]
    let skipped = try writeXcodeData(try imported([item]))
    #expect(skipped.isEmpty, "\(skipped.listed)")
    let data = try Directory.open(path: directory.path("x.xcappdata/AppData"))
    let status = try data.status("sparse")
    #expect(status.size == (1 << 40) + 100_003 && status.allocated < 1 << 20)
    var bytes: [UInt8] = []
    try data.file("sparse").read(count: 5, at: (1 << 39) - 1, into: &bytes)
    #expect(bytes == [0, 1, 2, 3, 0])
  }

  @Test func holesOfXcodesDataAreNotRead() throws {
    try directory.write(Self.list, at: "x.xcappdata/AppDataInfo.plist")
    try directory.write([1], at: "x.xcappdata/AppData/f")
    try ArchiveSourceTests.run(
      """
      cd x.xcappdata/AppData
      truncate -s 3M f
      printf x | dd of=f bs=1 seek=2097152 conv=notrunc status=none
      """, in: directory)
    var source = try XcodeDataSource(path: directory.path("x.xcappdata"))
    var (bytes, hole, buffer): ([UInt8], Int, [UInt8]) = ([], 0, Array(repeating: 0, count: 70_000))
    while let entry = try source.next() {
      guard case .file = entry.kind else { continue }
      var count = 1
      while count > 0 {
        let length = Int(try source.skipHole())
        bytes += Array(repeating: 0, count: length)
        hole += length
        count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
        bytes += buffer[..<count]
      }
    }
    #expect(try bytes == directory.read("x.xcappdata/AppData/f"))
    #expect(hole > 2 << 20)
  }

  /// A failed export does not block the next one, even into an empty directory.
  @Test(arguments: [true, false]) func aFailedExportLeavesNoFiles(isThere: Bool) throws {
    if isThere { try directory.directory.createDirectory("x.xcappdata") }
    let before = try directory.directory.names()
    let report = try imported(Self.items())
    do {
      var sink = try XcodeDataSink(path: directory.path("x.xcappdata"), app: Self.app)
      try sink.add(ListedSource.Item.file("apps/com.example.app/data/f", "x").entry)
    }
    #expect(try directory.directory.names() == before)
    let skipped = try writeXcodeData(report)
    #expect(skipped.isEmpty, "\(skipped.listed)")
    let source = try XcodeDataSource(path: directory.path("x.xcappdata"))
    #expect(source.app == Self.app)
    let made = try Directory.open(path: directory.path("x.xcappdata")).names()
    #expect(made == ["AppData", "AppDataInfo.plist"])
  }

  @Test func theNamesOfALargeDirectoryTakeNLogN() throws {
    let growth = try Growth { count in
      let names = (0..<count).map { ByteString("name-\($0 &* 7919 % count)") }
      return {
        var remaining = RemainingPaths()
        remaining.append(names, in: ["directory"])
        var last: ByteString = ""
        while let path = remaining.next(), let name = path.last {
          precondition(path.count == 2 && last < name)
          last = name
        }
      }
    }
    #expect(growth.isNLogN, "\(growth)")
  }

  /// Links are stored; mounts and sockets are not; entries next to AppData are reported.
  @Test func hostileDirectoriesAreRead() throws {
    try directory.write("<plist><dict/></plist>", at: "x.xcappdata/AppDataInfo.plist")
    try directory.write("x", at: "x.xcappdata/AppData/Documents/x")
    try directory.write("secret", at: "secret")
    try directory.write("other", at: "x.xcappdata/Other/y")
    let data = try Directory.open(path: directory.path("x.xcappdata/AppData"))
    try data.createLink("out", to: "../../secret")
    try data.createLink("Library", to: "/etc")
    let none = #expect(throws: InterchangeError.self) {
      _ = try XcodeDataSource(path: directory.path("x.xcappdata"))
    }
    #expect(none?.reason.contains("names its app") == true)
    let metadata =
      "<plist><dict><key>MCMMetadataIdentifier</key><string>a.b</string></dict></plist>"
    try directory.write(
      metadata, at: "x.xcappdata/AppData/.com.apple.mobile_container_manager.metadata.plist")
    var source = try XcodeDataSource(path: directory.path("x.xcappdata"))
    let outcome = try SnapFixture.read(&source)
    #expect(outcome.entries["apps/a.b/data/out"]?.kind == .symlink(target: "../../secret"))
    #expect(outcome.entries["apps/a.b/data/Library"]?.kind == .symlink(target: "/etc"))
    #expect(outcome.contents["apps/a.b/data/Documents/x"] == Array("x".utf8))
    #expect(outcome.entries.count == 6)
    #expect(outcome.reasons.count == 1 && outcome.reasons[0].hasPrefix("Other: "))
    let missing = #expect(throws: InterchangeError.self) {
      _ = try XcodeDataSource(path: directory.path("x.xcappdata/Other"))
    }
    #expect(missing?.reason == "it has no directory AppData")
  }

  /// A link in the place of the data directory or of its property list is not followed.
  @Test func aLinkInPlaceOfTheDataIsNotFollowed() throws {
    try directory.write("x", at: "elsewhere/x")
    try directory.write(Self.list, at: "x.xcappdata/AppDataInfo.plist")
    try Directory.open(path: directory.path("x.xcappdata")).createLink(
      "AppData", to: "../elsewhere")
    let error = #expect(throws: InterchangeError.self) {
      _ = try XcodeDataSource(path: directory.path("x.xcappdata"))
    }
    #expect(error?.kind == .system)
  }

  @Test func setIDBitsAreNotWritten() throws {
    var item = ListedSource.Item.file("apps/com.example.app/data/program", "x")
    item.entry.permissions = 0o6755
    let skipped = try writeXcodeData(try imported([item]))
    #expect(skipped.propertyCount == 1 && skipped.entryCount == 0)
    let status = try Directory.open(path: directory.path("x.xcappdata/AppData")).status("program")
    #expect(status.permissions == 0o755)
  }
}
