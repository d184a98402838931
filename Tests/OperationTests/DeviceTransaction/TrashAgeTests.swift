import ArchiveStore
import Backup
import DeviceDiscovery
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// How long the trash keeps files: until the next operation on the app, and at least a day.
@Suite(.spreadScans) struct TrashAgeTests {
  private static let begin: Int64 = 1_800_000_000

  /// Restores in place, `seconds` seconds after the first restore. Returns the items in the trash.
  private func restore(
    _ fixture: Fixture, _ snapshot: StoredSnapshot, at seconds: Int64
  ) throws -> [Trash.Item] {
    try fixture.directory.write("now, \(seconds)", at: "tree/file")
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    let reader = try fixture.repository.beginReading()
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder),
      time: Timestamp(seconds: Self.begin + seconds))
    (request.savesFirst, request.isForced) = (false, true)
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    _ = try DeviceRestoreOperation(
      plan, from: reader,
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
    ).run()
    return try Trash(of: device).items()
  }

  @Test func theNextOperationAfterADayDeletesTheTrash() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try fixture.backup().snapshot)
    let day: Int64 = 24 * 3600
    let first = try restore(fixture, snapshot, at: 0)
    #expect(first.map(\.time.seconds) == [Self.begin])
    #expect(first.first?.totals.files == 1 && first.first?.totals.bytes == 6)
    #expect(
      try restore(fixture, snapshot, at: day).count == 2, "exactly a day is not older than a day")
    let third = try restore(fixture, snapshot, at: day + 1)
    #expect(third.map(\.time.seconds) == [Self.begin + day, Self.begin + day + 1])
    #expect(try restore(fixture, snapshot, at: 9 * day).count == 1)
  }

  @Test func theTrashOfOtherAppsIsKept() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try fixture.backup().snapshot)
    _ = try restore(fixture, snapshot, at: 0)
    // Another app's files, and a directory that belongs to no known app.
    let trash: ByteString = "tree/.sandboxctl/trash"
    let name = try #require(try fixture.names(trash).first)
    let note = String(
      decoding: try fixture.directory.read(
        trash.appending(name).appending("operation.json")), as: UTF8.self)
    let ids = (1...3).map { ByteString("20270115T080000-0000000\($0)") }
    let (other, unknown, shared) = (ids[0], ids[1], ids[2])
    func write(_ text: String, _ id: ByteString) throws {
      try fixture.directory.write(
        text.replacing("\(name)", with: "\(id)"),
        at: trash.appending(id).appending("operation.json"))
    }
    try write(note.replacing("folders/tree", with: "apps/other"), other)
    try fixture.directory.write(
      "theirs", at: trash.appending(other).appending("apps/other/data/file"))
    try fixture.directory.write("whose?", at: trash.appending(unknown).appending("file"))
    try write(
      note.replacing(#""subjects":["#, with: #""subjects":[{"path":"apps/other"},"#), shared)
    let theirs = trash.appending(shared).appending("apps/other/data/file")
    try fixture.directory.write("theirs", at: theirs)
    try fixture.directory.write("ours", at: trash.appending(shared).appending("folders/tree/file"))
    let left = try restore(fixture, snapshot, at: 3 * 24 * 3600)
    #expect(Set(left.map(\.id)).isSuperset(of: ids) && left.count == 4)
    #expect(try fixture.text(theirs) == "theirs")
    #expect(try fixture.names(trash.appending(shared).appending("folders")).isEmpty)
  }

  @Test func anUnreadableTrashItemIsListed() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try fixture.backup().snapshot)
    _ = try restore(fixture, snapshot, at: 0)
    let trash = try trash(of: fixture)
    let found = (1...20).compactMap { call in
      Faults.inject(Faults.Plan(failing: [.list], at: call, number: 13)) { try? trash.items() }
    }
    #expect(found.contains { $0.count == 1 && $0[0].totals.files == 0 }, "one could not be counted")
    #expect(found.contains { $0.count == 1 && $0[0].totals.files == 1 })
    #expect(found.allSatisfy { $0.count == 1 && (0...1).contains($0[0].totals.files) })
  }

  /// A record may be wrong; only directories in a trash are removed.
  @Test func aRecordWithAnotherPathRemovesNothing() throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("precious", at: "precious/file")
    let location = fixture.directory.path("precious")
    let id = "20200101T000000-0123abcd"
    let locations = ["", "/.sandboxctl/trash/../\(id)", "/.sandboxctl/trash/\(id)"].map {
      #"{"path":"\#(location)\#($0)"}"#
    }
    try writeNote(fixture, id, elsewhere: locations)
    try fixture.directory.write("precious", at: ByteString("precious/.sandboxctl/trash/\(id)/file"))
    let trash = try trash(of: fixture)
    let items = try trash.items()
    #expect(items.map(\.directories.count) == [1])
    try trash.remove(try #require(items.first))
    #expect(try fixture.text("precious/file") == "precious")
    #expect(try fixture.text(ByteString("precious/.sandboxctl/trash/\(id)/file")) == "precious")
    #expect(try trash.items().isEmpty)
  }

  /// The path in the record is in a trash of the device, but a link in it points outside.
  @Test func aLinkInThePathOfATrashIsNotFollowed() throws {
    let fixture = try Fixture(inMemory: true)
    let id = "20200101T000000-0123abcd"
    try fixture.directory.write("precious", at: ByteString("victim/\(id)/file"))
    _ = try Directory.make(path: fixture.directory.path("tree/x/.sandboxctl"))
    try Directory.open(path: fixture.directory.path("tree/x/.sandboxctl"))
      .createLink("trash", to: fixture.directory.path("victim"))
    let location = fixture.directory.path("tree/x/.sandboxctl/trash").appending(ByteString(id))
    try writeNote(fixture, id, elsewhere: [#"{"path":"\#(location)"}"#])
    let trash = try trash(of: fixture)
    let item = try #require(try trash.items().first)
    #expect(throws: SystemError.self) { try trash.remove(item) }
    #expect(try fixture.text(ByteString("victim/\(id)/file")) == "precious")
  }

  /// The same for automatic removal after a day: of a whole operation, or of a part if other apps
  /// have files there.
  @Test(arguments: [[], ["apps/other"]] as [[ByteString]])
  func automaticRemovalFollowsNoLinkInThePathOfATrash(_ others: [ByteString]) throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try fixture.backup().snapshot)
    let id = "20200101T000000-0123abcd"
    let thesis = ByteString("victim/\(id)/folders/tree/thesis")
    try fixture.directory.write("precious", at: thesis)
    let above = try Directory.make(path: fixture.directory.path("tree/x/.sandboxctl"))
    try above.createLink("trash", to: fixture.directory.path("victim"))
    let location = fixture.directory.path("tree/x/.sandboxctl/trash").appending(ByteString(id))
    try fixture.directory.write(
      "old", at: ByteString("tree/.sandboxctl/trash/\(id)/folders/tree/file"))
    try writeNote(
      fixture, id, elsewhere: [#"{"path":"\#(location)"}"#], subjects: ["folders/tree"] + others)
    let scope = try DeviceScope(
      Device.find(root: fixture.directory.path("tree"), layout: .folder))
    try #require(scope.permits(location), "the test needs a permitted path")
    let left = try restore(fixture, snapshot, at: 0)
    #expect(try fixture.text(thesis) == "precious")
    #expect(left.map(\.id).contains(ByteString(id)), "an item removed in part is still listed")
    // The directories of a part are removed one by one as they become old enough.
    let own = ByteString("tree/.sandboxctl/trash/\(id)/folders/tree")
    if !others.isEmpty { #expect(try fixture.directory.directory.statusIfPresent(own) == nil) }
  }

  @Test func filesOfNoOperationAreKept() throws {
    let fixture = try Fixture(inMemory: true)
    let id = "20200101T000000-0123abcd"
    try writeNote(fixture, "20200101T000000-01234567", as: id)
    try fixture.directory.write("mine", at: "tree/.sandboxctl/trash/Documents/thesis")
    let items = try trash(of: fixture).items()
    #expect(items.map(\.id) == [ByteString(id)])
    #expect(items.map(\.operation) == [nil], "its record is of another operation")
  }

  @Test func theTrashOfAnotherUserIsNotTouched() throws {
    guard Host.userID == 0 else { return }
    let fixture = try Fixture(inMemory: true)
    try writeNote(fixture, "20200101T000000-0123abcd")
    try Directory.open(path: fixture.directory.path("tree/.sandboxctl")).setOwner(
      user: 1000, group: 1000, of: "trash")
    let error = #expect(throws: SystemError.self) { try trash(of: fixture).items() }
    #expect(error?.operation == .trust)
  }

  private func trash(of fixture: Fixture) throws -> Trash {
    try Trash(of: Device.find(root: fixture.directory.path("tree"), layout: .folder))
  }

  private func writeNote(
    _ fixture: Fixture, _ id: String, as directory: String? = nil, elsewhere: [String] = [],
    subjects: [ByteString] = []
  ) throws {
    let path = ByteString("tree/.sandboxctl/trash/\(directory ?? id)/operation.json")
    let subjects = subjects.map { #"{"path":"\#($0)"}"# }.joined(separator: ",")
    let locations = elsewhere.joined(separator: ",")
    try fixture.directory.write(
      #"{"format":1,"id":"\#(directory == nil ? id : "another")","operation":"restore","#
        + #""time":"2020-01-01T00:00:00Z","subjects":[\#(subjects)],"elsewhere":[\#(locations)]}"#,
      at: path)
    for name in ["tree/.sandboxctl/trash", "tree/.sandboxctl"] as [ByteString] {
      try Directory.open(path: fixture.directory.path(name)).setPermissions(0o700)
    }
  }
}
