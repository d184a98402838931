import ArchiveStore
import Backup
import DeviceDiscovery
import Glibc
import PolicyEngine
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// An app replaces a file while an operation puts another one in its place: at no moment is the file
/// of the app lost.
@Suite struct SwappedEntryTests {
  /// A directory with a file to replace, its staged successor and a trash.
  private struct Places {
    let directory: TemporaryDirectory

    init() throws {
      directory = try TemporaryDirectory("swapped", inMemory: true)
      try directory.write("old", at: "place/a/file")
      try directory.write("new", at: "staged/a/file")
      try directory.write("of the app", at: "app")
    }

    func runner() throws -> StepRunner {
      let roots = try ["place", "staged"].map { name in
        let path = directory.path(ByteString(name))
        return JournalRecord.Root(
          path: path, inode: try Directory.open(path: path).status().identity.inode)
      }
      return StepRunner(roots + [JournalRecord.Root(path: directory.path("trash"), inode: nil)])
    }

    /// The texts of the files in a directory, by their names.
    func texts(_ path: ByteString) throws -> [ByteString: String] {
      guard let opened = try? Directory.open(path: directory.path(path)) else { return [:] }
      return try Dictionary(
        uniqueKeysWithValues: opened.names().map { name in
          (name, String(decoding: try directory.read(path.appending(name)), as: UTF8.self))
        })
    }
  }

  private static let step = JournalStep(path: "a/file", source: 1, kept: 2)

  @Test func aFileSwappedAtAnyCallIsKept() throws {
    for call in 1...200 {
      let places = try Places()
      let path = places.directory.path
      let plan = Faults.Plan(at: call) {
        do {
          let top = try Directory.open(path: path)
          try top.rename("app", to: "file", in: top.directory("place").directory("a"))
        } catch { Issue.record(error) }
      }
      let runner = try places.runner()
      let isApplied = try Faults.inject(plan) { try runner.apply(Self.step) }
      #expect(isApplied)
      guard plan.hasFired else {
        #expect(call > 10)
        return
      }
      let (place, trash) = try (places.texts("place/a"), places.texts("trash/a"))
      let all = Array(place.values) + trash.values
      #expect(all.contains("of the app"), "call \(call): \(place) \(trash)")
      // It was put in place before or after the app's file.
      #expect(place["file"] == "new" || place["file"] == "of the app", "call \(call)")
      let left = try places.texts("staged/a")
      #expect(place.count == 1 && left.isEmpty, "call \(call)")
    }
    Issue.record("a step has more calls than expected")
  }

  /// The exchange is the first rename, whose failure says that the file system has no such call.
  @Test func aFileSystemWithoutExchangeIsSupported() throws {
    let places = try Places()
    let plan = Faults.Plan(failing: [.rename], at: 1, number: EINVAL)
    let runner = try places.runner()
    let isApplied = try Faults.inject(plan) { try runner.apply(Self.step) }
    #expect(isApplied && plan.hasFired)
    #expect(try places.texts("place/a") == ["file": "new"])
    #expect(try places.texts("trash/a") == ["file": "old"])
    #expect(try places.texts("staged/a").isEmpty)
  }

  /// An interruption right after the exchange: the replaced file is kept, and has the staged name.
  @Test(arguments: ["file", "file.1"]) func anExchangeBeforeTheInterruptionIsNotRepeated(
    kept: ByteString
  ) throws {
    let places = try Places()
    let directory = places.directory
    try directory.write("other", at: "trash/a/file")
    let trash = try Directory.open(path: directory.path("trash/a"))
    let place = try Directory.open(path: directory.path("place/a"))
    let staged = try Directory.open(path: directory.path("staged/a"))
    if kept == "file" { try trash.remove("file") }
    try trash.createHardLink(kept, to: "file", in: place)
    try staged.exchange("file", with: "file", in: place)
    #expect(try places.texts("staged/a") == ["file": "old"])
    #expect(try !places.runner().apply(Self.step), "it is in place already")
    #expect(try places.texts("place/a") == ["file": "new"])
    #expect(try places.texts("trash/a")[kept] == "old")
    #expect(try places.texts("staged/a").isEmpty)
  }

  /// The same, in a device: each restore is disturbed before another rename.
  @Test func aFileSwappedDuringARestoreIntoADeviceIsKept() throws {
    let fixture = try Fixture()
    try fixture.directory.write("stored", at: "tree/d/file")
    let snapshot = try #require(try fixture.backup().snapshot)
    for call in 1...100 {
      try fixture.directory.directory.removeTree("tree")
      try fixture.directory.write("older text", at: "tree/d/file")
      try fixture.directory.write("of the app", at: "app")
      let path = fixture.directory.path
      let plan = Faults.Plan(before: [.rename], at: call) {
        do {
          let top = try Directory.open(path: path)
          try top.rename("app", to: "file", in: top.directory("tree").directory("d"))
        } catch { Issue.record(error) }
      }
      try Faults.inject(plan) { try restore(fixture, snapshot) }
      guard plan.hasFired else {
        #expect(call > 3)
        return
      }
      let texts = try fixture.records("tree").keys.map { path in
        (try? fixture.text(ByteString("tree").appending(path))) ?? ""
      }
      #expect(texts.contains("of the app"), "rename \(call)")
      let placed = try fixture.text("tree/d/file")
      #expect(placed == "stored" || placed == "of the app", "rename \(call)")
    }
    Issue.record("a restore has more renames than expected")
  }

  private func restore(_ fixture: Fixture, _ snapshot: StoredSnapshot) throws {
    let reader = try fixture.repository.beginReading()
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(
      device, isInPlace: true, policy: try Fixture.policy(.folder))
    request.overwrite = .always
    request.savesFirst = false
    request.isForced = true
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    let report = try DeviceRestoreOperation(
      plan, from: reader,
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
    ).run()
    #expect(report.parts.allSatisfy { $0.report.isComplete })
  }
}
