import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Snapshots for snapd that are written here and then read by the reader.
struct SnapSinkTests {
  private let fixture: SnapFixture
  private let store: Fixture

  init() throws {
    fixture = try SnapFixture()
    store = try Fixture()
  }

  /// The data of two snaps, with all properties that an archive can store.
  private static func items() -> [ListedSource.Item] {
    var random = Seeded(3)
    var rich = ListedSource.Item.file("apps/editor/data/deep/rich", random.bytes(300_000))
    rich.entry.permissions = 0o640
    (rich.entry.owner, rich.entry.group) = (1000, 100)
    rich.entry.modified = Timestamp(seconds: 1_600_000_000, nanoseconds: 123_456_789)
    rich.entry.attributes = [.init(name: "user.note", value: [0, 1, 255])]
    var sparse = ListedSource.Item.entry(
      "apps/editor/system-data/sparse", .file(size: 20_000_000))
    sparse.parts = [.hole(10_000_000), .bytes(random.bytes(70_000)), .hole(9_930_000)]
    var directory = ListedSource.Item.entry("apps/editor/data/private", .directory)
    directory.entry.permissions = 0o700
    var odd = ListedSource.Item.file("apps/editor/revision/odd", "x")
    odd.entry.path[3] = ByteString([0xff, 10, 0x41])
    return [
      rich, .link("apps/editor/data/other", to: "apps/editor/data/deep/rich"), directory, odd,
      .entry("apps/editor/revision/link", .symlink(target: "/var/snap/x")), sparse,
      .file("apps/editor/system-revision/config", "set"),
      .file("apps/server/system-data/db", ""), .file("apps/server/data/x", "y"),
    ]
  }

  private func imported(_ items: [ListedSource.Item]) throws -> ImportReport {
    var source = ListedSource(items)
    source.apps = ["editor", "server"].map {
      ForeignApp(identifier: $0, build: "42", version: "2.0", revision: "42")
    }
    return try store.run(&source) { $0.placement.prefix = "" }
  }

  /// Writes a snapshot of this program for snapd. Returns the bytes with the skipped entries.
  private func export(
    _ report: ImportReport, as form: SnapSink.Form, of top: ByteString = "apps",
    _ change: (inout SnapSink.Facts) -> Void = { _ in }
  ) throws -> (bytes: [UInt8], skipped: SkippedEntries) {
    let snapshot = report.snapshot.snapshot
    var facts = SnapSink.Facts(
      snaps: SnapMetadata.all(in: snapshot), user: "ada", names: OwnerNames(of: snapshot),
      time: Timestamp(seconds: 1_700_000_000))
    change(&facts)
    var bytes: [UInt8] = []
    var sink = try SnapSink(
      to: { span throws(InterchangeError) in bytes += span.indices.map { span[$0] } }, form: form,
      facts)
    try store.export(report, of: top, below: top, to: &sink)
    return (bytes, sink.skipped)
  }

  @Test func anExportIsImportedAsItWas() throws {
    let first = try imported(Self.items())
    #expect(first.isComplete, "\(first.skipped.listed)")
    let (bytes, skipped) = try export(first, as: .export)
    #expect(skipped.isEmpty, "\(skipped.listed)")
    // Holes are not written.
    #expect(bytes.count < 1_000_000)
    var source = try fixture.source(bytes)
    let second = try store.run(&source) { $0.placement.prefix = "" }
    #expect(second.isComplete, "\(second.skipped.listed)")
    let wanted = try store.entries(first).filter { $0.key.isWithin("apps") }
    let found = try store.entries(second).filter { $0.key.isWithin("apps") }
    #expect(found.keys.sorted() == wanted.keys.sorted())
    for (path, entry) in wanted { #expect(found[path] == entry, "\(path)") }
  }

  @Test func aZipIsTheSnapshotOfOneSnap() throws {
    let report = try imported(Self.items())
    let (bytes, skipped) = try export(report, as: .single, of: "apps/editor")
    #expect(skipped.isEmpty)
    #expect(bytes.starts(with: [0x50, 0x4b, 3, 4]))
    let outcome = try fixture.read(bytes)
    #expect(outcome.reasons == [])
    #expect(outcome.contents["apps/editor/system-revision/config"] == Array("set".utf8))
    let error = #expect(throws: InterchangeError.self) { _ = try export(report, as: .single) }
    #expect(error?.reason.contains("contains one snap") == true)
  }

  @Test func theMetadataHasTheConfigurationAndTheUser() throws {
    let report = try imported(Self.items())
    let (bytes, _) = try export(report, as: .export) { facts in
      facts.snaps["editor"]?.configuration = ["port": 80]
      facts.snaps["editor"]?.epoch = ["read": [3], "write": [3]]
      facts.user = "bob"
    }
    var source = try fixture.source(bytes)
    _ = try SnapFixture.read(&source)
    let (snaps, user) = (source.snaps, source.foundUser)
    #expect(user == "bob")
    let editor = try #require(snaps.first { $0.name == "editor" })
    #expect(editor.configuration == ["port": 80] && editor.revision == "42")
    #expect(editor.epoch == ["read": [3], "write": [3]] && editor.version == "2.0")
    #expect(editor.size > 0 && editor.sums.count == 2)
    #expect(try #require(snaps.first { $0.name == "server" }).epoch == nil)
  }

  @Test func entriesThatSnapdCannotStoreAreReported() throws {
    let report = try imported([
      .file("apps/editor/data/x", "x"), .file("apps/editor/old-revisions/41/x", "x"),
      .link("apps/editor/system-data/linked", to: "apps/editor/data/x"),
      .file("apps/Not A Snap/data/x", "x"),
    ])
    let (bytes, skipped) = try export(report, as: .export)
    let paths = skipped.listed.map(\.path)
    for path: ByteString in [
      "apps/editor/old-revisions/41/x", "apps/editor/system-data/linked",
      "apps/Not A Snap/data/x",
    ] {
      #expect(paths.contains(path), "\(path) in \(paths)")
    }
    let outcome = try fixture.read(bytes)
    let files = outcome.entries.filter { $0.value.kind != .directory }.keys.sorted()
    #expect(files == ["apps/editor/data/x", "folders/snapd/editor.json"])
    let none = #expect(throws: InterchangeError.self) {
      _ = try export(report, as: .export, of: "apps/editor/old-revisions")
    }
    #expect(none?.kind == .unrepresentable)
  }

  /// In the order of the paths, old revisions come before the current one.
  @Test func theRevisionIsTheCurrentOne() throws {
    let report = try imported([.file("apps/editor/data/x", "x")])
    var snapshot = report.snapshot.snapshot
    let containers = [
      ("apps/editor/old-revisions/41", "41"), ("apps/editor/revision", "43"),
      ("apps/editor/system-revision", "42"),
    ]
    snapshot.device.containers = containers.map {
      DeviceRecord.Container(path: ByteString($0.0), revision: $0.1, realPath: "/x")
    }
    snapshot.apps[0].containers = snapshot.device.containers.map(\.path)
    #expect(SnapMetadata.all(in: snapshot)["editor"]?.revision == "43")
  }

  @Test func namesOfFilesHaveNoOddCharacters() {
    var metadata = SnapMetadata(
      name: "editor", revision: "42", version: "../1.0~rc/x y", time: Timestamp(seconds: 0))
    #expect(metadata.fileName == "1_editor_..1.0~rcxy_42.zip")
    metadata.version = "///"
    #expect(metadata.fileName == "1_editor_0_42.zip")
  }
}
