import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Snapshots of snapd are read, whether complete, damaged or hostile.
struct SnapSourceTests {
  private let fixture: SnapFixture

  init() throws { fixture = try SnapFixture() }

  @Test func aSnapshotHasLogicalPaths() throws {
    let archives = try SnapFixture.archives()
    let metadata = SnapFixture.metadata(archives)
    let bytes = try SnapFixture.zip(SnapFixture.members(archives, metadata))
    var source = try fixture.source(bytes)
    let (time, user, apps) = (source.madeAt, source.foundUser, source.apps)
    #expect(time == metadata.time && user == "ada")
    #expect(
      apps == [ForeignApp(identifier: "editor", build: "42", version: "2.0", revision: "42")])
    let outcome = try SnapFixture.read(&source)
    #expect(outcome.reasons == [])
    #expect(
      outcome.contents == [
        "apps/editor/system-revision/config": Array("set".utf8),
        "apps/editor/system-data/db": Array("rows".utf8),
        "apps/editor/revision/notes": Array("text".utf8),
        "apps/editor/data/places": Array("marks".utf8),
        "folders/snapd/editor.json": metadata.text,
      ])
    #expect(outcome.entries["folders/snapd/editor.json"]?.permissions == 0o600)
  }

  /// All archives have their own checksums, so they are complete without the central directory of
  /// the zip archive. If an archive is missing as well, the snapshot is damaged.
  @Test func aSnapshotWithoutDirectoryIsWhole() throws {
    let archives = try SnapFixture.archives()
    let metadata = SnapFixture.metadata(archives)
    let members = SnapFixture.members(archives, metadata)
    let bytes = try SnapFixture.zip(members)
    let outcome = try fixture.read(Array(bytes.dropLast(22)))
    #expect(outcome.reasons == [] && outcome.contents.count == 5)
    // The metadata is first, and the first archive is truncated in the middle.
    let cut = try SnapFixture.zip(Array(members.suffix(2)) + Array(members.prefix(2)))
    var source = try fixture.source(Array(cut.prefix(cut.count / 2)))
    var kind: InterchangeError.Kind?
    do { while try source.next() != nil {} } catch { kind = error.kind }
    #expect(kind == .damaged)
  }

  /// An archive with a wrong checksum is reported, and the others are imported.
  @Test func aWrongSumIsNamed() throws {
    var archives = try SnapFixture.archives()
    let metadata = SnapFixture.metadata(archives)
    archives[.system] = try SnapFixture.archive([.file("42/config", "forged")])
    let outcome = try fixture.read(SnapFixture.zip(SnapFixture.members(archives, metadata)))
    #expect(outcome.reasons.count == 1 && outcome.reasons[0].contains("another SHA3-384"))
    #expect(outcome.reasons[0].hasPrefix("editor/archive.tgz: "))
    #expect(outcome.contents["apps/editor/system-revision/config"] == nil)
    #expect(outcome.contents["apps/editor/revision/notes"] == Array("text".utf8))
  }

  @Test func membersThatDoNotMatchTheMetadataAreNamed() throws {
    let archives = try SnapFixture.archives()
    let metadata = SnapFixture.metadata(archives)
    let extra = try SnapFixture.archive([.file("common/evil", "x")])
    var members = SnapFixture.members(archives, metadata)
    members.removeAll { $0.name == "archive.tgz" }
    members += [
      ("user/bob.tgz", extra), ("user/../ada.tgz", extra), ("user/ada.tgz", extra),
      ("other", [1]),
    ]
    let outcome = try fixture.read(SnapFixture.zip(members))
    #expect(
      outcome.contents.keys.sorted() == [
        "apps/editor/data/places", "apps/editor/revision/notes", "folders/snapd/editor.json",
      ])
    let reasons = outcome.reasons.joined(separator: "\n")
    for part in [
      "editor/user/bob.tgz: meta.json has no SHA3-384",
      "editor/user/../ada.tgz: snapd's snapshots have no such member",
      "editor/user/ada.tgz: there is another archive", "editor/other: ",
      "editor/archive.tgz: it is in meta.json and missing",
    ] {
      #expect(reasons.contains(part), "\(part) in \(reasons)")
    }
    #expect(outcome.skipped.entryCount == 5)
  }

  /// Names that lead outside, or to other revisions, are skipped; links are only stored.
  @Test func namesThatLeadOutsideAreSkipped() throws {
    var link = SnapFixture.Member.file("common/link", "")
    link.entry.kind = .symlink(target: "../../../../etc")
    var hard = SnapFixture.Member.file("common/hard", "")
    hard.entry.kind = .hardLink(to: ["etc", "passwd"])
    let archive = try SnapFixture.archive([
      .file("../evil", "x"), .file("common/../../evil", "x"), .file("/etc/evil", "x"),
      .file("41/old", "x"), .file("evil", "x"), link, .file("common/link/below", "x"), hard,
      .file("common/good", "y"),
    ])
    let archives: [SnapArchive: [UInt8]] = [.user("ada"): archive]
    let bytes = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives)))
    var source = try fixture.source(bytes)
    let store = try Fixture()
    let report = try store.run(&source) { request in
      request.placement.prefix = ""
      request.placement.device.layout = "snap"
    }
    let entries = try store.entries(report)
    let files = entries.filter { $0.value.node.kind != .directory }.keys.sorted()
    #expect(
      files == [
        "apps/editor/data/good", "apps/editor/data/link", "folders/snapd/editor.json",
      ])
    #expect(report.skipped.entryCount == 7, "\(report.skipped.listed)")
    #expect(!report.isComplete)
  }

  @Test func theRevisionIsRecorded() throws {
    let archives = try SnapFixture.archives()
    var source = try fixture.source(
      SnapFixture.zip(SnapFixture.members(archives, SnapFixture.metadata(archives))))
    let store = try Fixture()
    let report = try store.run(&source) { $0.placement.prefix = "" }
    let containers = report.snapshot.snapshot.device.containers
    let revisions = containers.compactMap { container in
      container.revision.map { "\(container.path) \($0)" }
    }
    #expect(revisions == ["apps/editor/revision 42", "apps/editor/system-revision 42"])
    #expect(report.snapshot.snapshot.apps.map(\.version) == ["2.0"])
  }

  @Test func damagedMetadataIsRefused() throws {
    let archives = try SnapFixture.archives()
    let metadata = SnapFixture.metadata(archives)
    let members = SnapFixture.members(archives, metadata)
    func expect(_ part: String, _ change: (inout [(name: String, bytes: [UInt8])]) -> Void) throws {
      var changed = members
      change(&changed)
      let bytes = try SnapFixture.zip(changed)
      let error = #expect(throws: InterchangeError.self) { _ = try fixture.read(bytes) }
      #expect(error?.reason.contains(part) == true, "\(String(describing: error))")
    }
    try expect("no meta.json") { $0.removeAll { $0.name == "meta.json" } }
    try expect("no meta.sha3_384") { $0.removeAll { $0.name == "meta.sha3_384" } }
    try expect("another SHA3-384") { $0[2].bytes += [0x20] }
    try expect("two files of metadata") { $0.append(("meta.json", metadata.text)) }
    try expect("more than") { $0.append(contentsOf: (0..<10_001).map { ("m\($0)", []) }) }
    try expect("more than") { $0[2].bytes += [UInt8](repeating: 0x20, count: 5 << 20) }
    let none = #expect(throws: InterchangeError.self) { _ = try fixture.read([1, 2, 3]) }
    #expect(none?.kind == .unknownFormat)
  }

  @Test func oneUserIsChosen() throws {
    var archives = try SnapFixture.archives()
    archives[.user("root")] = try SnapFixture.archive([.file("common/of-root", "x")])
    let bytes = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives)))
    let error = #expect(throws: InterchangeError.self) { _ = try fixture.read(bytes) }
    #expect(error?.reason == "it has the data of several users: 'ada', 'root'")
    let outcome = try fixture.read(bytes, user: "root")
    #expect(outcome.reasons == [])
    #expect(outcome.contents["apps/editor/data/of-root"] != nil)
    #expect(outcome.contents["apps/editor/data/places"] == nil)
    let none = try fixture.read(bytes, user: "eve")
    #expect(none.reasons.count == 1 && none.reasons[0].contains("no data of the user 'eve'"))
  }

  /// A small snapshot cannot fill the disk.
  @Test func aBombIsNotCopied() throws {
    let bomb = [UInt8](repeating: 0, count: 65 << 20)
    let archives: [SnapArchive: [UInt8]] = [.system: bomb]
    let bytes = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives)), as: .zip)
    #expect(bytes.count < 1 << 20)
    let outcome = try fixture.read(bytes)
    #expect(outcome.reasons.count == 1 && outcome.reasons[0].contains("far more"))
  }

  /// Returns an export with these files.
  private func export(_ files: [(String, [UInt8])]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var sink = try TarSink { span throws(InterchangeError) in
      bytes += span.indices.map { span[$0] }
    }
    for (name, content) in files {
      try sink.add(
        ForeignEntry(path: [ByteString(name)], kind: .file(size: UInt64(content.count))))
      try content.withUnsafeBytes { try sink.write($0) }
    }
    try sink.finish()
    return bytes
  }

  @Test func anExportHasSeveralSnapshots() throws {
    let archives = try SnapFixture.archives()
    let first = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives)))
    let second = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives, of: "server")))
    let list = Array(#"{"format":1,"files":["1_editor.zip","1_server.zip"]}"#.utf8)
    let content = ("content.json", Array("{}".utf8))
    let whole = try fixture.read(
      export([content, ("1_editor.zip", first), ("1_server.zip", second), ("export.json", list)]))
    #expect(whole.reasons == [])
    #expect(whole.contents.count == 10)
    #expect(whole.contents["apps/server/data/places"] == Array("marks".utf8))
    // A damaged snapshot does not affect the others.
    let damaged = try fixture.read(
      export([("1_editor.zip", Array(first.prefix(first.count / 2))), ("1_server.zip", second)]))
    #expect(damaged.contents.count == 5)
    let reasons = damaged.reasons.joined(separator: "\n")
    #expect(reasons.contains("1_editor.zip: ") && reasons.contains("no valid export.json"))
    let twice = try fixture.read(
      export([("1_editor.zip", first), ("2_editor.zip", first), ("export.json", list)]))
    let twiceReasons = twice.reasons.joined(separator: "\n")
    #expect(twiceReasons.contains("another snapshot of the snap 'editor'"))
    #expect(twiceReasons.contains("1_server.zip: export.json lists it"))
  }

  /// The snapshots that were skipped before a truncation are also reported.
  @Test func aTruncatedExportReportsSkippedSnapshots() throws {
    let archives = try SnapFixture.archives()
    let first = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives)))
    let second = try SnapFixture.zip(
      SnapFixture.members(archives, SnapFixture.metadata(archives, of: "server")))
    let bytes = try export([
      ("0_bad.zip", Array(first.prefix(first.count / 2))), ("1_server.zip", second),
      ("2_editor.zip", first),
    ])
    var source = try fixture.source(Array(bytes.dropLast(1024 + 600)))
    var (count, kind): (Int, InterchangeError.Kind?) = (0, nil)
    do {
      while try source.next() != nil { count += 1 }
    } catch { kind = error.kind }
    #expect(kind == .damaged && count == 5)
    #expect(source.skipped.listed.map(\.path) == ["0_bad.zip"])
  }

  @Test(arguments: [
    #"{"snap":"editor","revision":"42","time":"2020-01-02T03:04:05Z","sha3-384":{}}"#,
    #"{"snap":"../x","revision":"42","time":"2020-01-02T03:04:05Z"}"#,
    #"{"snap":"editor","revision":"current","time":"2020-01-02T03:04:05Z"}"#,
    #"{"snap":"editor","revision":"42","time":"yesterday"}"#,
    #"{"snap":"editor","revision":"42","time":"2020-01-02T03:04:05Z","sha3-384":{"archive.tgz":"0"}}"#,
    #"[]"#, #"{"snap":"editor""#,
  ])
  func metadataIsChecked(_ text: String) {
    #expect(throws: SnapFault.self) { _ = try SnapMetadata(parsing: Array(text.utf8)) }
  }

  /// The metadata of many snapshots, which compresses well, cannot exhaust memory.
  @Test func theMetadataOfAnExportIsBounded() throws {
    let archives: [SnapArchive: [UInt8]] = [.system: try SnapFixture.archive([])]
    let files = try (0..<9).map { number in
      var metadata = SnapFixture.metadata(archives, of: ByteString("snap\(number)"))
      metadata.summary = String(repeating: "x", count: 4_000_000)
      let members = SnapFixture.members(archives, metadata)
      return ("\(number).zip", try SnapFixture.zip(members, as: .zip))
    }
    let bytes = try export(files)
    let error = #expect(throws: InterchangeError.self) { _ = try fixture.read(bytes) }
    #expect(error?.kind == .limitExceeded && error?.reason.contains("bytes of metadata") == true)
  }

  @Test func anEndlessVersionIsNotKept() throws {
    var metadata = SnapFixture.metadata([.system: [1]])
    metadata.version = String(repeating: "9", count: 257)
    #expect(try SnapMetadata(parsing: metadata.text).version == "0")
  }

  @Test func metadataIsReadAsItWasWritten() throws {
    var metadata = SnapFixture.metadata([.system: [1], .user("ada"): [2, 3]])
    metadata.storeID = "abc"
    metadata.epoch = ["read": [1, 2], "write": [2]]
    metadata.configuration = ["port": 8080, "names": ["a", "b"]]
    #expect(try SnapMetadata(parsing: metadata.text) == metadata)
    metadata.epoch = nil
    #expect(try SnapMetadata(parsing: metadata.text) == metadata)
  }

  @Test(arguments: [
    ("editor", true), ("a1", true), ("editor_work", true), ("a", false), ("12", false),
    ("-a", false), ("Editor", false), ("editor_", false), ("editor_work_x", false), ("a/b", false),
    ("", false),
  ])
  func namesOfSnapsAreChecked(_ name: String, isValid: Bool) {
    #expect(SnapMetadata.isName(ByteString(name)) == isValid)
  }
}
