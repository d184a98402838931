import Codecs
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

extension JournalRecord {
  /// The journal's file as bytes.
  var bytes: [UInt8] {
    var all: [UInt8] = []
    try? write { piece throws(SystemError) in all += piece }
    return all
  }

  /// Reads a journal from bytes.
  init?(reading bytes: [UInt8], values: Int = 64) {
    guard let file = try? Descriptor.inMemory(bytes),
      let record = try? JournalRecord.read(file, values: values)
    else { return nil }
    self = record
  }
}

/// The steps of a journal, stored compactly and read line by line.
@Suite(.spreadScans) struct JournalStepsTests {
  private static let steps = [
    JournalStep(path: "a/b", source: 1),
    JournalStep(path: "c", root: 2, source: 0, sourceName: "d", kept: 1, keptName: "e", item: 0),
    JournalStep(path: ByteString([0xff, 0xfe]), kept: 2, keptName: ByteString([0x80]), item: 7),
    JournalStep(path: "f", kept: 2, item: 7),
  ]

  @Test func stepsAreStoredCompletely() {
    let steps = JournalSteps(Self.steps)
    #expect(Array(steps) == Self.steps && steps.count == 4)
    #expect(steps.reversed().first == Self.steps.last)
    #expect(steps == JournalSteps(Self.steps) && steps != JournalSteps(Self.steps.dropLast()))
  }

  @Test func adjacentStepsOfAnItemAreAppliedTogether() {
    let steps = JournalSteps(Self.steps + [JournalStep(path: "g", kept: 2)])
    #expect(steps.items.map(\.count) == [1, 1, 2, 1])
    #expect(steps.singly.map(\.count) == [1, 1, 1, 1, 1])
    #expect(steps.items.flatMap { $0 } == Array(steps))
    #expect(JournalSteps().items.first { _ in true } == nil)
  }

  /// Lines cross the boundaries of the buffers through which the file is read.
  @Test func aJournalOfManyStepsIsReadBack() throws {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 1_800_000_000), subjects: ["apps/a"],
      containers: ["apps/a/data"])
    record.state = .moving
    record.roots = [.init(path: "/a", inode: 1), .init(path: "/b", inode: 2)]
    for number in 0..<20_000 {
      record.steps.append(
        JournalStep(
          path: ByteString("directory-\(number / 100)/file-\(number)"), source: 1, kept: 0,
          item: number % 3 == 0 ? number : nil))
    }
    #expect(JournalRecord(reading: record.bytes) == record)
  }

  @Test(arguments: [
    ["", "", "a", "", "b"], [String(repeating: "x", count: 600_000), "y"], [], [""],
  ]) func linesAreReadOneByOne(lines: [String]) throws {
    for ending in ["", "\n"] {
      let text = lines.joined(separator: "\n") + ending
      var reader = JournalRecord.LineReader(try Descriptor.inMemory(Array(text.utf8)))
      var found: [String] = []
      while let line = try reader.next(limit: 1 << 20) {
        found.append(String(decoding: line, as: UTF8.self))
      }
      #expect(found == lines.filter { !$0.isEmpty })
    }
  }

  @Test(arguments: [
    ("as", JSON.string(String(repeating: "n", count: 256))), ("unit", .integer(-1)),
    ("unit", .integer(1 << 40)),
  ]) func aStepWithInvalidMembersIsRefused(member: String, value: JSON) {
    var members = [
      JSON.Member("path", "a"), JSON.Member("in", 0), JSON.Member("keep", 1),
    ]
    #expect(JournalStep(.object(members), roots: 2) != nil)
    members.append(JSON.Member(member, value))
    #expect(JournalStep(.object(members), roots: 2) == nil)
  }
}
