import Foundation
import SystemIO
import TestSupport

@testable import DatabaseCapture

/// A directory with a database `db`, which tests change and capture, and a directory for copies.
final class Fixture {
  let temporary: TemporaryDirectory
  let source: Directory
  let spool: Directory
  let unit = DatabaseUnit("db")
  private let mount: Mount?

  init(_ label: String = "capture", inMemory: Bool = false) throws {
    temporary = try TemporaryDirectory(label, inMemory: inMemory)
    mount = nil
    source = try temporary.directory.makeDirectory("source")
    spool = try temporary.directory.makeDirectory("spool")
  }

  /// Creates the directories on a new file system of this kind; see `Mount`.
  init(on kind: String) throws {
    temporary = try TemporaryDirectory("capture")
    mount = try Mount(new: kind, mebibytes: 310, in: temporary, "volume")
    let volume = try temporary.directory.directory("volume")
    source = try volume.makeDirectory("source")
    spool = try volume.makeDirectory("spool")
    try temporary.directory.createLink("source", to: "volume/source")
  }

  /// The path of the database.
  var database: String { temporary.string + "/source/db" }

  /// Writes a member of the database in place.
  func write(_ bytes: [UInt8], _ member: DatabaseMember) throws {
    try temporary.write(bytes, at: ByteString("source").appending(unit.name(of: member)))
  }

  /// Sets an old modification time on the database's file.
  func age() throws {
    try source.setModified(Timestamp(seconds: 1_700_000_000, nanoseconds: 5), of: "db")
  }

  func capture(
    _ shelf: Shelf, whenBusy: DatabaseCapture.WhenBusy = .copyUnlocked(after: 0),
    holdingAtMost hold: Double = DatabaseCapture.LockLimits().blocking,
    readingAtMost limit: Double = 600
  ) throws -> CaptureResult? {
    try DatabaseCapture.capture(
      unit, in: source, spool: spool, whenBusy: whenBusy,
      within: DatabaseCapture.LockLimits(blocking: hold, passive: limit), store: shelf.store)
  }

  /// The maximum time under locks in tests that expect a copy to succeed: on a busy machine, this
  /// thread may have to wait longer than apps should.
  static let patientHold = 60.0

  /// Creates a database for `writer.py` with `rows` rows of 3000 bytes.
  func prepare(_ mode: String, rows: Int = 1000) throws {
    let outcome = try Program.run(
      "python3",
      [Self.program("writer.py"), temporary.string + "/source", "prepare", mode, "\(rows)"])
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Returns the path of a program that the tests start.
  static func program(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Programs/\(name)").path
  }

  /// Returns the faults of captured databases, or an empty text if they are undamaged and have all
  /// required rows.
  static func verify(_ lines: [String]) throws -> String {
    let input = Array((lines.joined(separator: "\n") + "\n").utf8)
    let outcome = try Program.run("python3", [program("verify.py")], input: input)
    return outcome.code == 0 ? outcome.output : outcome.output + outcome.errors
  }
}

/// Returns bytes that differ by position and have no meaning to SQLite.
func content(_ count: Int, _ seed: UInt64) -> [UInt8] {
  var generator = Seeded(seed)
  return generator.bytes(count)
}

/// Returns the header of a log with a salt, followed by `count` bytes.
func log(salt: UInt8, _ count: Int) -> [UInt8] {
  [0x37, 0x7f, 0x06, 0x82] + [UInt8](repeating: 0, count: 12)
    + [UInt8](repeating: salt, count: 16) + content(count, UInt64(salt))
}

/// Returns the first bytes of a journal, followed by `count` bytes.
func journal(_ count: Int) -> [UInt8] { journalMagic + content(count, 99) }

let journalMagic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
