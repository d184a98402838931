import DatabaseCapture
import Foundation
import SystemIO
import TestSupport
import Testing

/// 50 captures in each journal mode while another process commits in bursts. Reads are slowed down
/// by a pause of a millisecond for each 64 KiB. A restored database must be undamaged, and must
/// contain every number that was logged before its capture began. Plain copies, made in turn with
/// the captures and equally slow, are damaged, which proves that the load is sufficient.
@Suite(.serialized) struct ProofTests {
  private static let captures = 50
  private static let slowly = Faults.Plan(pausing: 0.001, afterReading: 64 << 10)

  @Test(arguments: ["wal", "delete", "truncate", "persist"])
  func capturesDuringBurstsOfCommitsAreUndamaged(mode: String) throws {
    var generator = Seeded.fresh(mode)
    let fixture = try Fixture("proof", inMemory: true)
    try fixture.prepare(mode, rows: 400)
    let writer = try SQLiteProcess([
      Fixture.program("bursts.py"), fixture.temporary.string + "/source", mode,
      "\(generator.next())",
    ])
    var tally = Tally()
    for _ in 0..<Self.captures {
      let committed = try logged(fixture)
      try Faults.inject(Self.slowly) { try capture(fixture, committed, &tally) }
      let before = try logged(fixture)
      try Faults.inject(Self.slowly) { try copyPlainly(fixture, before, &tally) }
      if tally.captures.count == 10 { try tally.verify(fixture) }
    }
    try tally.verify(fixture)
    // A writer that locks block for more than a minute exits with an error.
    let (line, code) = try writer.finish()
    #expect(code == 0, "\(line)")
    print("\(mode): \(tally.summary); the writer: \(line)")
    expectWork(line, mode)
    #expect(tally.methods.values.reduce(0, +) == Self.captures)
    #expect(tally.damagedCopies > 0)
    // The writer has closed the database, so only its own files exist.
    let hasJournal = mode == "persist" || mode == "truncate"
    let own: Set<ByteString> = hasJournal ? ["db", "bursts", "db-journal"] : ["db", "bursts"]
    #expect(Set(try fixture.source.names()) == own)
  }

  /// Checks that the writer did its work.
  private func expectWork(_ line: String, _ mode: String) {
    let words = line.split(separator: " ")
    #expect(Int(words.first ?? "") ?? 0 > 0)
    #expect(words.contains { $0.hasPrefix("reopened=") && $0 != "reopened=0" })
    guard mode == "wal" else { return }
    for kind in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
      #expect(words.contains { $0.hasPrefix(kind + "=") }, "\(kind)")
    }
  }

  /// The captures and copies that have not been verified yet, and the results so far.
  private struct Tally {
    var methods: [CaptureResult.Method: Int] = [:]
    var damagedCopies = 0
    var copied = 0
    var captures: [String] = []
    var copies: [String] = []

    var summary: String {
      let counts = methods.map { "\($0.value) \($0.key.rawValue)" }.sorted()
      return (counts + ["\(damagedCopies) of \(copied) plain copies damaged"])
        .joined(separator: ", ")
    }

    mutating func verify(_ fixture: Fixture) throws {
      guard !copies.isEmpty else { return }
      #expect(try Fixture.verify(captures) == "")
      let faults = try Fixture.verify(copies)
      copied += copies.count
      damagedCopies += copies.filter { faults.contains($0.split(separator: " ")[0] + ":") }.count
      (captures, copies) = ([], [])
      try fixture.temporary.directory.removeTree("out")
    }
  }

  private func capture(_ fixture: Fixture, _ committed: Int, _ tally: inout Tally) throws {
    let shelf = Shelf()
    let deadline = Host.monotonicSeconds() + 10
    let result = try fixture.capture(shelf, whenBusy: .copyUnlocked(after: deadline))
    let found = try #require(result)
    tally.methods[found.method, default: 0] += 1
    // An unlocked copy is marked as such, and guarantees nothing.
    if found.method == .unlocked { return }
    let location = "out/capture\(tally.captures.count)"
    try shelf.restore(found, to: fixture.temporary, at: ByteString(location))
    tally.captures.append("\(fixture.temporary.string)/\(location) bursts=\(committed)")
  }

  /// Copies file by file: the database first, then its companions.
  private func copyPlainly(_ fixture: Fixture, _ committed: Int, _ tally: inout Tally) throws {
    let location = "out/copy\(tally.copies.count)"
    for name: ByteString in ["db", "db-wal", "db-journal"] {
      guard let file = try? fixture.source.file(name) else { continue }
      let bytes = try file.read(count: Int(try file.status().size), at: 0)
      try fixture.temporary.write(bytes, at: ByteString(location).appending(name))
    }
    tally.copies.append("\(fixture.temporary.string)/\(location) bursts=\(committed)")
  }

  /// Returns the last number whose commit has returned.
  private func logged(_ fixture: Fixture) throws -> Int {
    let bytes = try fixture.temporary.read("source/bursts")
    return Int(String(decoding: bytes, as: UTF8.self).filter { $0 != " " }) ?? 0
  }
}
