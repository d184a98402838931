import ArchiveStore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// How long the trash keeps something: until the next operation on the app, and a day at least.
@Suite(.spreadScans) struct TrashAgeTests {
  private static let begin: Int64 = 1_800_000_000

  /// Restores in place at a time, so many seconds after the first; gives the trash then.
  private func restore(
    _ rig: Fixture, _ snapshot: StoredSnapshot, at seconds: Int64
  ) throws -> [Trash.Item] {
    try rig.directory.write("now, \(seconds)", at: "tree/file")
    let device = try Device.find(root: rig.directory.path("tree"), layout: .folder)
    let reader = try rig.repository.beginReading()
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder),
      time: Timestamp(seconds: Self.begin + seconds))
    (request.savesFirst, request.isForced) = (false, true)
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    _ = try DeviceRestoreOperation(
      plan, rig.repository, from: reader, saving: BackupRequest(program: "test")
    ).run()
    return try Trash(of: device).items()
  }

  @Test func aDayAfterItGoesWithTheNextOperation() throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try rig.backup().snapshot)
    let day: Int64 = 24 * 3600
    let first = try restore(rig, snapshot, at: 0)
    #expect(first.map(\.time.seconds) == [Self.begin])
    #expect(first.first?.totals.files == 1 && first.first?.totals.bytes == 6)
    #expect(try restore(rig, snapshot, at: day).count == 2, "a day is not over a day")
    let third = try restore(rig, snapshot, at: day + 1)
    #expect(third.map(\.time.seconds) == [Self.begin + day, Self.begin + day + 1])
    #expect(try restore(rig, snapshot, at: 9 * day).count == 1)
  }

  @Test func whatIsOfOtherAppsStays() throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try rig.backup().snapshot)
    _ = try restore(rig, snapshot, at: 0)
    // Another app's things, and a directory of which nobody knows whose it is.
    let trash: ByteString = "tree/.sandboxctl/trash"
    let name = try #require(try rig.names(trash).first)
    let note = String(
      decoding: try rig.directory.read(
        trash.appending(name).appending("operation.json")), as: UTF8.self)
    let ids = (1...3).map { ByteString("20270115T080000-0000000\($0)") }
    let (other, unknown, shared) = (ids[0], ids[1], ids[2])
    func write(_ text: String, _ id: ByteString) throws {
      try rig.directory.write(
        text.replacing("\(name)", with: "\(id)"),
        at: trash.appending(id).appending("operation.json"))
    }
    try write(note.replacing("folders/tree", with: "apps/other"), other)
    try rig.directory.write("theirs", at: trash.appending(other).appending("apps/other/data/file"))
    try rig.directory.write("whose?", at: trash.appending(unknown).appending("file"))
    try write(
      note.replacing(#""subjects":["#, with: #""subjects":[{"path":"apps/other"},"#), shared)
    let theirs = trash.appending(shared).appending("apps/other/data/file")
    try rig.directory.write("theirs", at: theirs)
    try rig.directory.write("ours", at: trash.appending(shared).appending("folders/tree/file"))
    let left = try restore(rig, snapshot, at: 3 * 24 * 3600)
    #expect(Set(left.map(\.id)).isSuperset(of: ids) && left.count == 4)
    #expect(try rig.text(theirs) == "theirs")
    #expect(try rig.names(trash.appending(shared).appending("folders")).isEmpty)
  }

  @Test func whatCannotBeLookedAtIsListedAllTheSame() throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try rig.backup().snapshot)
    _ = try restore(rig, snapshot, at: 0)
    let trash = try trash(of: rig)
    let found = (1...20).compactMap { call in
      Faults.inject(Faults.Plan(failing: [.list], at: call, number: 13)) { try? trash.items() }
    }
    #expect(found.contains { $0.count == 1 && $0[0].totals.files == 0 }, "one could not be counted")
    #expect(found.contains { $0.count == 1 && $0[0].totals.files == 1 })
    #expect(found.allSatisfy { $0.count == 1 && (0...1).contains($0[0].totals.files) })
  }

  /// A note can be wrong; nothing but a trash is removed on its word.
  @Test func aNoteThatLeadsElsewhereRemovesNothing() throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write("precious", at: "precious/file")
    let place = rig.directory.path("precious")
    let id = "20200101T000000-0123abcd"
    let places = ["", "/.sandboxctl/trash/../\(id)", "/.sandboxctl/trash/\(id)"].map {
      #"{"path":"\#(place)\#($0)"}"#
    }
    try writeNote(rig, id, elsewhere: places)
    try rig.directory.write("precious", at: ByteString("precious/.sandboxctl/trash/\(id)/file"))
    let trash = try trash(of: rig)
    let items = try trash.items()
    #expect(items.map(\.directories.count) == [1])
    try trash.remove(try #require(items.first))
    #expect(try rig.text("precious/file") == "precious")
    #expect(try rig.text(ByteString("precious/.sandboxctl/trash/\(id)/file")) == "precious")
    #expect(try trash.items().isEmpty)
  }

  /// The path in the note is that of a trash in the device, where a link leads out of it.
  @Test func aLinkInTheWayOfATrashIsNotFollowed() throws {
    let rig = try Fixture(inMemory: true)
    let id = "20200101T000000-0123abcd"
    try rig.directory.write("precious", at: ByteString("victim/\(id)/file"))
    _ = try Directory.make(path: rig.directory.path("tree/x/.sandboxctl"))
    try Directory.open(path: rig.directory.path("tree/x/.sandboxctl"))
      .createLink("trash", to: rig.directory.path("victim"))
    let place = rig.directory.path("tree/x/.sandboxctl/trash").appending(ByteString(id))
    try writeNote(rig, id, elsewhere: [#"{"path":"\#(place)"}"#])
    let trash = try trash(of: rig)
    let item = try #require(try trash.items().first)
    #expect(throws: SystemError.self) { try trash.remove(item) }
    #expect(try rig.text(ByteString("victim/\(id)/file")) == "precious")
  }

  /// The same of what goes without being asked for after a day: whole with the operation's things,
  /// and in part where other apps have things there.
  @Test(arguments: [[], ["apps/other"]] as [[ByteString]])
  func theAutomaticRemovalFollowsNoLinkInTheWayOfATrash(_ others: [ByteString]) throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write("stored", at: "tree/file")
    let snapshot = try #require(try rig.backup().snapshot)
    let id = "20200101T000000-0123abcd"
    let thesis = ByteString("victim/\(id)/folders/tree/thesis")
    try rig.directory.write("precious", at: thesis)
    let above = try Directory.make(path: rig.directory.path("tree/x/.sandboxctl"))
    try above.createLink("trash", to: rig.directory.path("victim"))
    let place = rig.directory.path("tree/x/.sandboxctl/trash").appending(ByteString(id))
    try rig.directory.write("old", at: ByteString("tree/.sandboxctl/trash/\(id)/folders/tree/file"))
    try writeNote(
      rig, id, elsewhere: [#"{"path":"\#(place)"}"#], subjects: ["folders/tree"] + others)
    let scope = try RecoveryScope(Device.find(root: rig.directory.path("tree"), layout: .folder))
    try #require(scope.permits(place), "else nothing there would be looked at")
    let left = try restore(rig, snapshot, at: 0)
    #expect(try rig.text(thesis) == "precious")
    #expect(left.map(\.id).contains(ByteString(id)), "what could not go whole is still listed")
    // Of a part each place is dealt with by itself: its time had come.
    let own = ByteString("tree/.sandboxctl/trash/\(id)/folders/tree")
    if !others.isEmpty { #expect(try rig.directory.directory.statusIfPresent(own) == nil) }
  }

  @Test func whatIsNoOperationOrOfAnotherOneIsLeftAlone() throws {
    let rig = try Fixture(inMemory: true)
    let id = "20200101T000000-0123abcd"
    try writeNote(rig, "20200101T000000-01234567", as: id)
    try rig.directory.write("mine", at: "tree/.sandboxctl/trash/Documents/thesis")
    let items = try trash(of: rig).items()
    #expect(items.map(\.id) == [ByteString(id)])
    #expect(items.map(\.operation) == [nil], "its note is of another operation")
  }

  @Test func theTrashOfAnotherUserIsNotTouched() throws {
    guard Host.userID == 0 else { return }
    let rig = try Fixture(inMemory: true)
    try writeNote(rig, "20200101T000000-0123abcd")
    try Directory.open(path: rig.directory.path("tree/.sandboxctl")).setOwner(
      user: 1000, group: 1000, of: "trash")
    let error = #expect(throws: SystemError.self) { try trash(of: rig).items() }
    #expect(error?.operation == .trust)
  }

  private func trash(of rig: Fixture) throws -> Trash {
    try Trash(of: Device.find(root: rig.directory.path("tree"), layout: .folder))
  }

  private func writeNote(
    _ rig: Fixture, _ id: String, as directory: String? = nil, elsewhere: [String] = [],
    subjects: [ByteString] = []
  ) throws {
    let path = ByteString("tree/.sandboxctl/trash/\(directory ?? id)/operation.json")
    let subjects = subjects.map { #"{"path":"\#($0)"}"# }.joined(separator: ",")
    let places = elsewhere.joined(separator: ",")
    try rig.directory.write(
      #"{"format":1,"id":"\#(directory == nil ? id : "another")","operation":"restore","#
        + #""time":"2020-01-01T00:00:00Z","subjects":[\#(subjects)],"elsewhere":[\#(places)]}"#,
      at: path)
    for name in ["tree/.sandboxctl/trash", "tree/.sandboxctl"] as [ByteString] {
      try Directory.open(path: rig.directory.path(name)).setPermissions(0o700)
    }
  }
}
