import Codecs
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// The format of the journal, and the execution of its steps.
@Suite(.spreadScans) struct JournalTests {
  private static let odd = ByteString([0x61, 0xff, 0x2f, 0xe9])

  private func record() -> JournalRecord {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 1_800_000_000), subjects: ["apps/a"],
      containers: ["apps/a/data", ByteString(Array("apps/a/".utf8) + [0xff])])
    record.currentContainer = 1
    record.state = .moving
    record.staging = ["/device/a"]
    record.roots = [.init(path: "/device/a", inode: .max), .init(path: "/trash", inode: nil)]
    record.steps = [
      JournalStep(path: Self.odd, source: 1, kept: 0, keptName: ByteString([0xfe])),
      JournalStep(path: "b/c", kept: 1),
    ]
    return record
  }

  @Test func aWrittenJournalIsReadBack() throws {
    let record = record()
    #expect(record.id.hasPrefix("20270115T080000-"))
    #expect(JournalRecord(reading: record.bytes) == record)
    var preparing = record
    (preparing.state, preparing.roots, preparing.steps) = (.preparing, [], [])
    #expect(JournalRecord(reading: preparing.bytes) == preparing)
  }

  @Test(arguments: [
    "../b", "/b", "a/../b", "a/./b", "a//b", "", ".", "a/",
  ]) func aStepWithAPathOutsideItsRootIsRefused(path: String) {
    let step: JSON = ["path": .string(path), "in": 0, "keep": 1]
    #expect(JournalStep(step, roots: 2) == nil)
  }

  @Test func aStepWithAnUnknownRootIsRefused() {
    #expect(JournalStep(["path": "a", "in": 0, "keep": 1], roots: 2) != nil)
    #expect(JournalStep(["path": "a", "in": 0, "keep": 2], roots: 2) == nil)
    #expect(JournalStep(["path": "a", "in": -1, "keep": 1], roots: 2) == nil)
    #expect(JournalStep(["path": "a", "in": 0], roots: 2) == nil, "a step without effect")
    #expect(JournalStep(["path": "a", "in": 0, "keep": 1, "as": "../x"], roots: 2) == nil)
  }

  /// A journal too large to read is refused before the first step, and the existing journal stays.
  @Test func aJournalTooLargeToReadIsNotWritten() throws {
    let temporary = try TemporaryDirectory()
    let record = record()
    let name = ByteString(record.id + ".json")
    #expect(throws: SystemError.tooLarge(temporary.path(name))) {
      try OperationJournal.write(record, in: temporary.directory, limit: record.bytes.count - 1)
    }
    #expect(try temporary.directory.names().isEmpty)
    try OperationJournal.write(record, in: temporary.directory, limit: record.bytes.count)
    #expect(try temporary.read(name) == record.bytes)
  }

  @Test func aDamagedJournalIsRefused() throws {
    let bytes = record().bytes
    #expect(JournalRecord(reading: Array(bytes.dropLast(4))) == nil)
    let text = String(decoding: bytes, as: UTF8.self)
    let other = text.replacing("\"format\":1", with: "\"format\":2")
    #expect(JournalRecord(reading: Array(other.utf8)) == nil)
  }

  // MARK: - Steps

  /// A directory with a target, staged files and a trash.
  private struct Locations {
    let directory = try? TemporaryDirectory("journal", inMemory: true)

    func runner() throws -> StepRunner {
      let directory = try #require(directory)
      let roots = try ["place", "staged"].map { name in
        let path = directory.path(ByteString(name))
        return JournalRecord.Root(
          path: path, inode: try Directory.open(path: path).status().identity.inode)
      }
      return StepRunner(roots + [JournalRecord.Root(path: directory.path("trash"), inode: nil)])
    }

    func text(_ path: ByteString) throws -> String? {
      let directory = try #require(directory)
      guard let bytes = try? directory.read(path) else { return nil }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  @Test func aStepCanBeRepeated() throws {
    let locations = Locations()
    let directory = try #require(locations.directory)
    try directory.write("old", at: "place/a/file")
    try directory.write("new", at: "staged/a/file")
    let step = JournalStep(path: "a/file", source: 1, kept: 2)
    #expect(try locations.runner().apply(step))
    #expect(try locations.text("place/a/file") == "new")
    #expect(try locations.text("trash/a/file") == "old")
    #expect(try !locations.runner().apply(step), "it is already in place")
    #expect(try locations.text("place/a/file") == "new")
  }

  @Test func aFileMovedBeforeTheInterruptionIsNotMovedAgain() throws {
    let locations = Locations()
    let directory = try #require(locations.directory)
    try directory.write("old", at: "place/file")
    try directory.write("new", at: "staged/file")
    try directory.write("another", at: "trash/x")
    // The first half of the step was already executed.
    try directory.directory.directory("trash").createHardLink(
      "file", to: "file", in: directory.directory.directory("place"))
    #expect(try locations.runner().apply(JournalStep(path: "file", source: 1, kept: 2)))
    #expect(try locations.text("place/file") == "new")
    #expect(try directory.directory.directory("trash").names() == ["file", "x"])
    #expect(try locations.text("trash/file") == "old")
  }

  @Test func aFileCreatedMeanwhileIsKeptBesideTheFirst() throws {
    let locations = Locations()
    let directory = try #require(locations.directory)
    try directory.write("of the app", at: "place/file")
    try directory.write("old", at: "trash/file")
    try directory.write("x", at: "staged/x")
    #expect(try locations.runner().apply(JournalStep(path: "file", kept: 2)))
    #expect(try locations.text("place/file") == nil)
    #expect(try locations.text("trash/file") == "old")
    #expect(try locations.text("trash/file.1") == "of the app")
  }

  @Test func filesAndDirectoriesReplaceEachOther() throws {
    let locations = Locations()
    let directory = try #require(locations.directory)
    try directory.write("file", at: "place/a")
    try directory.write("inner", at: "staged/a/inner")
    try directory.write("inner", at: "place/b/inner")
    try directory.write("file", at: "staged/b")
    let runner = try locations.runner()
    #expect(try runner.apply(JournalStep(path: "a", source: 1, kept: 2)))
    #expect(try runner.apply(JournalStep(path: "b", source: 1, kept: 2)))
    #expect(try locations.text("place/a/inner") == "inner")
    #expect(try locations.text("place/b") == "file")
    #expect(try locations.text("trash/a") == "file")
    #expect(try locations.text("trash/b/inner") == "inner")
  }

  @Test func aReplacedFileIsKeptUnderAnotherName() throws {
    let locations = Locations()
    let directory = try #require(locations.directory)
    try directory.write("old", at: "place/a/file")
    try directory.write("new", at: "staged/a/file")
    let step = JournalStep(path: "a/file", source: 1, kept: 0, keptName: "file.before")
    #expect(try locations.runner().apply(step))
    #expect(try locations.text("place/a/file") == "new")
    #expect(try locations.text("place/a/file.before") == "old")
  }

  @Test func anotherDirectoryAtTheRootsPathIsNotTouched() throws {
    let locations = Locations()
    let directory = try #require(locations.directory)
    try directory.write("old", at: "place/file")
    try directory.write("new", at: "staged/file")
    let runner = try locations.runner()
    try directory.directory.rename("place", to: "moved", in: directory.directory)
    try directory.write("of another user", at: "place/file")
    #expect(throws: SystemError.self) {
      try runner.apply(JournalStep(path: "file", source: 1, kept: 2))
    }
    #expect(try locations.text("place/file") == "of another user")
    #expect(try locations.text("moved/file") == "old")
  }
}
