import DatabaseCapture
import Foundation
import SystemIO
import TestSupport
import Testing

/// 200 captures of databases that another process commits to in bursts, each reading slowed down to
/// 64 KiB and a pause of a millisecond: a restored database is whole and holds every number that was
/// logged before its capture began. Plain copies, made in turn with the captures and read as slowly,
/// are damaged: the load is one that damages.
@Suite(.serialized) struct ProofTests {
  private static let captures = 50
  private static let slowly = Faults.Plan(pausing: 0.001, afterReading: 64 << 10)

  @Test(arguments: ["wal", "delete", "truncate", "persist"])
  func burstsOfCommits(mode: String) throws {
    var generator = Seeded.fresh(mode)
    let rig = try Fixture("proof", inMemory: true)
    try rig.prepare(mode, rows: 400)
    let writer = try SQLiteProcess([
      Fixture.program("bursts.py"), rig.temporary.string + "/source", mode, "\(generator.next())",
    ])
    var tally = Tally()
    for _ in 0..<Self.captures {
      let committed = try logged(rig)
      try Faults.inject(Self.slowly) { try capture(rig, committed, &tally) }
      let before = try logged(rig)
      try Faults.inject(Self.slowly) { try copyPlainly(rig, before, &tally) }
      if tally.captures.count == 10 { try tally.verify(rig) }
    }
    try tally.verify(rig)
    // A writer whom locks kept waiting longer than a minute would have failed.
    let (line, code) = try writer.finish()
    #expect(code == 0, "\(line)")
    print("\(mode): \(tally.summary); the writer: \(line)")
    expectWork(line, mode)
    #expect(tally.methods.values.reduce(0, +) == Self.captures)
    #expect(tally.damagedCopies > 0)
    // The writer has closed the database: nothing but its own files is there.
    let hasJournal = mode == "persist" || mode == "truncate"
    let own: Set<ByteString> = hasJournal ? ["db", "bursts", "db-journal"] : ["db", "bursts"]
    #expect(Set(try rig.source.names()) == own)
  }

  /// The writer has done all that it is there for.
  private func expectWork(_ line: String, _ mode: String) {
    let words = line.split(separator: " ")
    #expect(Int(words.first ?? "") ?? 0 > 0)
    #expect(words.contains { $0.hasPrefix("reopened=") && $0 != "reopened=0" })
    guard mode == "wal" else { return }
    for kind in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
      #expect(words.contains { $0.hasPrefix(kind + "=") }, "\(kind)")
    }
  }

  /// What was captured and copied, and what of it is not verified yet.
  private struct Tally {
    var methods: [CaptureMethod: Int] = [:]
    var damagedCopies = 0
    var copied = 0
    var captures: [String] = []
    var copies: [String] = []

    var summary: String {
      let counts = methods.map { "\($0.value) \($0.key.rawValue)" }.sorted()
      return (counts + ["\(damagedCopies) of \(copied) plain copies damaged"])
        .joined(separator: ", ")
    }

    mutating func verify(_ rig: Fixture) throws {
      guard !copies.isEmpty else { return }
      #expect(try Fixture.verify(captures) == "")
      let faults = try Fixture.verify(copies)
      copied += copies.count
      damagedCopies += copies.filter { faults.contains($0.split(separator: " ")[0] + ":") }.count
      (captures, copies) = ([], [])
      try rig.temporary.directory.removeTree("out")
    }
  }

  private func capture(_ rig: Fixture, _ committed: Int, _ tally: inout Tally) throws {
    let shelf = Shelf()
    let deadline = Host.monotonicSeconds() + 10
    let result = try rig.capture(shelf, whenBusy: .takeAsItStands(after: deadline))
    let found = try #require(result)
    tally.methods[found.method, default: 0] += 1
    // What was taken as it stood says so, and promises nothing.
    if found.method == .asItStood { return }
    let place = "out/capture\(tally.captures.count)"
    try shelf.restore(found, to: rig.temporary, at: ByteString(place))
    tally.captures.append("\(rig.temporary.string)/\(place) bursts=\(committed)")
  }

  /// What copying file by file gives: the database, then what lies beside it.
  private func copyPlainly(_ rig: Fixture, _ committed: Int, _ tally: inout Tally) throws {
    let place = "out/copy\(tally.copies.count)"
    for name: ByteString in ["db", "db-wal", "db-journal"] {
      guard let file = try? rig.source.file(name) else { continue }
      let bytes = try file.read(count: Int(try file.status().size), at: 0)
      try rig.temporary.write(bytes, at: ByteString(place).appending(name))
    }
    tally.copies.append("\(rig.temporary.string)/\(place) bursts=\(committed)")
  }

  /// The last number whose commit has returned.
  private func logged(_ rig: Fixture) throws -> Int {
    let bytes = try rig.temporary.read("source/bursts")
    return Int(String(decoding: bytes, as: UTF8.self).filter { $0 != " " }) ?? 0
  }
}
