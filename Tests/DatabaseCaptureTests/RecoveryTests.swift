import Foundation
import SystemIO
import TestSupport
import Testing

@testable import DatabaseCapture

/// Logs with random changes are applied exactly as SQLite applies them, byte for byte.
struct RecoveryTests {
  private static let changes = 60

  @Test(arguments: ["log", "journal-0", "journal-1", "journal-2"])
  func aChangedLogIsAppliedLikeSQLiteAppliesIt(kind: String) throws {
    var random = Seeded.fresh(kind)
    let temporary = try TemporaryDirectory("recovery", inMemory: true)
    let made = try Program.run("python3", [Fixture.program("logs.py"), temporary.string])
    guard made.code == 0 else { throw Program.Failure(description: made.errors) }
    let name: ByteString = kind == "log" ? "db-wal" : "db-journal"
    let position = ByteString(kind)
    let database = try temporary.read(position.appending("db"))
    let log = try temporary.read(position.appending(name))
    var expected: [(position: ByteString, bytes: [UInt8])] = []
    for number in 0..<Self.changes {
      let changed = number == 0 ? log : change(log, kind, &random)
      let result: [UInt8]
      do {
        result = try merge(database, changed, isLog: kind == "log")
      } catch is LogRefusal {
        continue
      }
      let position = ByteString("changed/\(number)")
      try temporary.write(database, at: position.appending("db"))
      try temporary.write(changed, at: position.appending(name))
      expected.append((position.appending("db"), result))
    }
    #expect(expected[0].bytes != database, "the log has an effect")
    let paths = expected.map { "\(temporary.string)/\($0.position)\n" }.joined()
    let reported = try Program.run(
      "python3", [Fixture.program("recover.py")], input: Array(paths.utf8))
    let answers = reported.output.split(separator: "\n")
    try #require(answers.count == expected.count, "\(reported.errors)")
    var compared = 0
    for (answer, (position, bytes)) in zip(answers, expected) where answer == "ok" {
      #expect(try temporary.read(position) == bytes, "\(position)")
      compared += 1
    }
    #expect(answers[0] == "ok" && compared > expected.count / 2, "\(Set(answers))")
  }

  private func merge(_ database: [UInt8], _ log: [UInt8], isLog: Bool) throws -> [UInt8] {
    let size = UInt64(log.count)
    let found =
      try isLog
      ? overlay(log, WriteAheadLog(size: size)) : overlay(log, RollbackJournal(size: size))
    try found?.requireFit(over: UInt64(database.count))
    return try merged(database, log, found)
  }

  /// Changes a byte, truncates the log, or replaces a record with another.
  private func change(_ log: [UInt8], _ kind: String, _ random: inout Seeded) -> [UInt8] {
    var log = log
    let position = Int.random(in: 0..<log.count, using: &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: log[position % 64] = UInt8.random(in: .min ... .max, using: &random)
    case 1: log[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 2: log.removeLast(log.count - position)
    default:
      let (head, size) = kind == "log" ? (32, 1048) : (512, 1032)
      let count = (log.count - head) / size
      let from = head + size * Int.random(in: 0..<count, using: &random)
      let to = head + size * Int.random(in: 0..<count, using: &random)
      log.replaceSubrange(to..<(to + size), with: Array(log[from..<(from + size)]))
    }
    return log
  }
}
