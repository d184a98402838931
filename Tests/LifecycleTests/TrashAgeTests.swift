import ArchiveStore
import Lifecycle
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// How long the trash keeps something: until the next operation on the app, and a day at least.
@Suite struct TrashAgeTests {
  private static let begin: Int64 = 1_800_000_000

  /// Restores in place at a time, so many seconds after the first; gives the trash then.
  private func restore(
    _ rig: Rig, _ snapshot: StoredSnapshot, at seconds: Int64
  ) throws -> [Trash.Item] {
    try rig.folder.write("now, \(seconds)", at: "tree/file")
    let device = try Device.find(root: rig.folder.path("tree"), layout: .folder)
    let reader = try rig.repository.beginReading()
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Rig.policy(.folder),
      time: Timestamp(seconds: Self.begin + seconds))
    (request.savesFirst, request.isForced) = (false, true)
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    _ = try DeviceRestoreOperation(
      plan, rig.repository, from: reader, saving: BackupRequest(program: "test")
    ).run()
    return try Trash(of: device.root).items()
  }

  @Test func aDayAfterItGoesWithTheNextOperation() throws {
    let rig = try Rig(inMemory: true)
    try rig.folder.write("stored", at: "tree/file")
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
    let rig = try Rig(inMemory: true)
    try rig.folder.write("stored", at: "tree/file")
    let snapshot = try #require(try rig.backup().snapshot)
    _ = try restore(rig, snapshot, at: 0)
    // Another app's things, and a folder of which nobody knows whose it is.
    let trash: ByteString = "tree/.sandboxctl/trash"
    let name = try #require(try rig.names(trash).first)
    let note = String(
      decoding: try rig.folder.read(
        trash.appending(name).appending("operation.json")), as: UTF8.self)
    let other = note.replacing("folders/tree", with: "apps/other")
    try rig.folder.write(other, at: trash.appending("other/operation.json"))
    try rig.folder.write("theirs", at: trash.appending("other/apps/other/data/file"))
    try rig.folder.write("whose?", at: trash.appending("unknown/file"))
    let both = note.replacing(
      #""subjects":["#, with: #""subjects":[{"path":"apps/other"},"#)
    try rig.folder.write(both, at: trash.appending("shared/operation.json"))
    try rig.folder.write("theirs", at: trash.appending("shared/apps/other/data/file"))
    try rig.folder.write("ours", at: trash.appending("shared/folders/tree/file"))
    let left = try restore(rig, snapshot, at: 3 * 24 * 3600)
    #expect(Set(left.map(\.id)).isSuperset(of: ["other", "unknown", "shared"]) && left.count == 4)
    #expect(try rig.text(trash.appending("shared/apps/other/data/file")) == "theirs")
    #expect(try rig.names(trash.appending("shared/folders")).isEmpty)
  }

  @Test func whatCannotBeLookedAtIsListedAllTheSame() throws {
    let rig = try Rig(inMemory: true)
    try rig.folder.write("stored", at: "tree/file")
    let snapshot = try #require(try rig.backup().snapshot)
    _ = try restore(rig, snapshot, at: 0)
    let trash = Trash(of: rig.folder.path("tree"))
    let found = (1...20).compactMap { call in
      Faults.inject(Faults.Plan(failing: [.list], at: call, number: 13)) { try? trash.items() }
    }
    #expect(found.contains { $0.count == 1 && $0[0].totals.files == 0 }, "one could not be counted")
    #expect(found.contains { $0.count == 1 && $0[0].totals.files == 1 })
    #expect(found.allSatisfy { $0.count == 1 && (0...1).contains($0[0].totals.files) })
  }

  /// A note can be wrong; nothing but a trash is removed on its word.
  @Test func aNoteThatLeadsElsewhereRemovesNothing() throws {
    let rig = try Rig(inMemory: true)
    try rig.folder.write("precious", at: "precious/file")
    let place = rig.folder.path("precious")
    try rig.folder.write(
      #"{"format":1,"id":"x","operation":"restore","time":"2020-01-01T00:00:00Z","subjects":[],"#
        + #""elsewhere":[{"path":"\#(place)"},{"path":"\#(place)/.sandboxctl/trash/../x"}]}"#,
      at: "tree/.sandboxctl/trash/x/operation.json")
    let trash = Trash(of: rig.folder.path("tree"))
    let items = try trash.items()
    #expect(items.map(\.folders.count) == [1])
    try trash.remove(try #require(items.first))
    #expect(try rig.text("precious/file") == "precious")
    #expect(try trash.items().isEmpty)
  }
}
