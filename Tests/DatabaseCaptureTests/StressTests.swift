import DatabaseCapture
import Foundation
import SystemIO
import TestSupport
import Testing

/// Databases are captured while real writers use them: each capture must be undamaged, and must
/// contain everything that was committed before it began. `SANDBOXCTL_STRESS_SECONDS` sets the
/// duration of each case (default: 2.5 seconds).
@Suite(.serialized) struct StressTests {
  private static let seconds =
    ProcessInfo.processInfo.environment["SANDBOXCTL_STRESS_SECONDS"].flatMap(Double.init) ?? 2.5

  struct Case: CustomTestStringConvertible, Sendable {
    let mode: String
    let writers: Int
    var checkpoints = false
    /// Whether a writer holds its lock on the database all the time.
    var isExclusive: Bool { mode.hasSuffix("-exclusive") }
    var testDescription: String { "\(mode), \(writers) writers" }
  }

  @Test(arguments: [
    Case(mode: "wal", writers: 2, checkpoints: true), Case(mode: "wal", writers: 1),
    Case(mode: "delete", writers: 2), Case(mode: "truncate", writers: 1),
    Case(mode: "persist", writers: 2), Case(mode: "wal-exclusive", writers: 1),
    Case(mode: "delete-exclusive", writers: 1),
  ])
  func capturesDuringWritesAreUndamaged(_ given: Case) throws {
    var generator = Seeded.fresh(given.testDescription)
    let fixture = try Fixture("stress", inMemory: true)
    try fixture.prepare(given.mode)
    let writers = try start(given, fixture, &generator)
    var tally = Tally()
    let end = Host.monotonicSeconds() + Self.seconds
    // If a database is locked or deferred each time, it depends on chance when the first capture
    // succeeds.
    while Host.monotonicSeconds() < end
      || (tally.isEmpty && Host.monotonicSeconds() < end + 300)
    {
      try captureOnce(fixture, given, writers.names, &tally, &generator)
      if tally.waiting.count == 10 { try tally.verify(fixture) }
    }
    for process in writers.processes { #expect(process.end() == 0) }
    try tally.verify(fixture)
    print("\(given.testDescription): \(tally.summary)")
    #expect(tally.verified > 0)
    if !given.isExclusive { #expect(tally.methods[.unlocked] == nil) }
  }

  private func start(
    _ given: Case, _ fixture: Fixture, _ generator: inout Seeded
  ) throws -> (names: [String], processes: [SQLiteProcess]) {
    let names = (1...given.writers).map { "writer\($0)" }
    let more = given.checkpoints ? ["checkpoint"] : []
    let processes = try (names + more).map { name in
      try SQLiteProcess([
        Fixture.program("writer.py"), fixture.temporary.string + "/source", name,
        name == "checkpoint" ? name : given.mode, "\(generator.next())",
      ])
    }
    return (names, processes)
  }

  /// The captures that have not been verified yet, and the results so far.
  private struct Tally {
    var methods: [CaptureResult.Method: Int] = [:]
    var deferred = 0
    var verified = 0
    var waiting: [String] = []

    var isEmpty: Bool { verified == 0 && waiting.isEmpty }

    var summary: String {
      let counts = methods.map { "\($0.value) \($0.key.rawValue)" }.sorted()
      return (counts + ["\(deferred) deferred", "\(verified) verified"]).joined(separator: ", ")
    }

    mutating func verify(_ fixture: Fixture) throws {
      if waiting.isEmpty { return }
      let faults = try Fixture.verify(waiting)
      #expect(faults == "")
      verified += waiting.count
      waiting = []
      try fixture.temporary.directory.removeTree("out")
    }
  }

  private func captureOnce(
    _ fixture: Fixture, _ given: Case, _ writers: [String], _ tally: inout Tally,
    _ generator: inout Seeded
  ) throws {
    let committed = try writers.map { "\($0)=\(try number(fixture, $0))" }
    let shelf = Shelf()
    let slowness = Double.random(in: 0...0.004, using: &generator)
    if Bool.random(using: &generator) { shelf.atPiece = { _ in Host.pause(seconds: slowness) } }
    let patience = given.isExclusive ? 0.1 : 600
    let whenBusy: DatabaseCapture.WhenBusy =
      Bool.random(using: &generator)
      ? .deferred : .copyUnlocked(after: Host.monotonicSeconds() + patience)
    let found = try fixture.capture(shelf, whenBusy: whenBusy, holdingAtMost: Fixture.patientHold)
    guard let result = found else {
      tally.deferred += 1
      return
    }
    tally.methods[result.method, default: 0] += 1
    if result.method == .unlocked { return }
    let location = "out/\(tally.waiting.count)-\(result.method.rawValue)"
    try shelf.restore(result, to: fixture.temporary, at: ByteString(location))
    tally.waiting.append(
      (["\(fixture.temporary.string)/\(location)"] + committed).joined(separator: " "))
  }

  /// Returns the last transaction that a writer reports as committed.
  private func number(_ fixture: Fixture, _ writer: String) throws -> Int {
    let bytes = try fixture.temporary.read(ByteString("source/" + writer))
    return Int(String(decoding: bytes, as: UTF8.self).filter { $0 != " " }) ?? 0
  }
}
