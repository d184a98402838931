import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands that change keys, killed at calls that change the repository: at least one of the
/// old and the new passphrase opens it, everything is restored, and the next commands complete the
/// work.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct KeyKillTests {
  private static let kills = Sampling.count(2, of: 6)
  private static let calls = "mkdirat,openat,write,ftruncate,fsync,renameat,unlinkat"
  private static let old = "--passphrase-file old"
  private static let new = "--passphrase-file new"

  enum Work: String, CaseIterable, Sendable {
    case add = "key add second --new-passphrase-file new"
    case change = "key change --new-passphrase-file new"
    case remove = "key remove second"
    case rotate = "key rotate --recovery-key next.key"
    case rewrap = "key rewrap --quiet"

    /// The command that prepares the repository, if one is needed.
    var preparation: String? {
      switch self {
      case .add, .change, .rotate: nil
      case .remove: Work.add.rawValue
      case .rewrap: Work.rotate.rawValue
      }
    }
  }

  private static func prepare(_ work: Work) throws -> KeyFixture {
    let keys = try KeyFixture()
    try keys.writeTree(files: 3, of: 20_000, seed: 41)
    try keys.backUp(old)
    if let line = work.preparation { try keys.succeed("\(line) --repo repo \(old)") }
    for name in ["repo", "home"] { try keys.cli.copy(name, to: "pristine/\(name)") }
    return keys
  }

  private static func beginAgain(_ keys: KeyFixture, _ work: Work) throws {
    for name in ["repo", "home"] {
      try keys.cli.directory.directory.removeTree(ByteString(name))
      try keys.cli.copy("pristine/\(name)", to: name)
    }
    if try keys.cli.isThere("other-home") {
      try keys.cli.directory.directory.removeTree("other-home")
    }
    _ = try Directory.make(path: keys.cli.directory.path("other-home"))
    for name: ByteString in ["next.key", "last.key"] where try keys.cli.isThere(name) {
      if name == "next.key", work == .rewrap { continue }
      try keys.cli.directory.directory.remove(name)
    }
  }

  /// Runs the command under strace on one processor, so that all calls are of one thread.
  private static func run(
    _ work: Work, _ keys: KeyFixture, under tracer: Strace
  ) throws -> Program.Outcome {
    try keys.cli.run(
      "\(work.rawValue) --repo repo \(old)", under: ["taskset", "-c", "0"] + tracer.command)
  }

  @Test(arguments: Work.allCases) func killedChangeLeavesAKey(_ work: Work) throws {
    let keys = try Self.prepare(work)
    let tracer = try Strace(recording: Self.calls)
    let complete = try Self.run(work, keys, under: tracer)
    #expect(complete.code == 0, "\(complete.errors)")
    // From the lease on.
    let calls = Array(try tracer.recorded().drop { $0.name != "mkdirat" })
    try #require(calls.count > Self.kills, "\(calls.count)")
    var killed = 0
    for kill in 0..<Self.kills {
      let call = calls[(kill * calls.count + calls.count / 2) / Self.kills]
      let what = "\(work), killed at \(call.name) \(call.number): \(call.arguments)"
      try Self.beginAgain(keys, work)
      let strace = try Strace(call.name, killingAt: call.number)
      let outcome = try Self.run(work, keys, under: strace)
      if [137, -9].contains(outcome.code) { killed += 1 }
      try expectOpened(keys, work, what)
      try finish(keys, work, what)
    }
    #expect(killed > 0)
  }

  /// A signal that arrives with the lease ends the command before it has changed anything, and
  /// leaves neither the lease nor the right to remove objects to other programs.
  @Test(arguments: [Work.add, .change, .remove, .rotate]) func signalledChangeLeavesNoLease(
    _ work: Work
  ) throws {
    let keys = try Self.prepare(work)
    let files = try keys.cli.names(in: "repo/keys")
    let settings = try keys.cli.directory.read("repo/repository.json")
    let tracer = try Strace(
      "mkdirat", signalling: "TERM", on: [keys.cli.directory.string + "/repo/leases"])
    let outcome = try keys.cli.run(
      "\(work.rawValue) --repo repo \(Self.old) --json", under: tracer.command)
    #expect(outcome.code == 130 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains(#""code":"interrupted""#), "\(outcome.errors)")
    #expect(outcome.errors.contains("nothing was changed: run it again"), "\(outcome.errors)")
    #expect(try keys.cli.names(in: "repo/leases").isEmpty)
    #expect(try keys.cli.names(in: "repo/keys") == files && !keys.cli.isThere("next.key"))
    #expect(try keys.cli.directory.read("repo/repository.json") == settings)
    #expect(try isOpened(keys, by: Self.old))
    try finish(keys, work, "\(work), after a signal")
  }

  /// Whether a key opens the repository, on this host or on one that has not used it before.
  private func isOpened(
    _ keys: KeyFixture, by options: String, isElsewhere: Bool = false
  ) throws -> Bool {
    let words = "ls latest:folders/tree --repo repo \(options)".split(separator: " ")
    let home = ["HOME": keys.cli.directory.string + "/other-home"]
    return try keys.run(words.map(String.init), environment: isElsewhere ? home : [:]).code == 0
  }

  /// Expects the right keys to open the repository after a command was killed.
  private func expectOpened(_ keys: KeyFixture, _ work: Work, _ what: String) throws {
    let opened = try [Self.old, Self.new].filter { try isOpened(keys, by: $0) }
    switch work {
    case .change: #expect(opened.count == 1, "\(what)")
    case .add, .remove, .rotate, .rewrap: #expect(opened.contains(Self.old), "\(what)")
    }
    try keys.expectRestored(try #require(opened.first))
    guard work == .rotate || work == .rewrap else { return }
    let identities = try ["recovery.key", "next.key"].filter {
      try keys.cli.isThere(ByteString($0))
        && isOpened(keys, by: "--identity \($0)", isElsewhere: true)
    }
    #expect(!identities.isEmpty, "\(what)")
  }

  /// Runs a command at once: the right of the killed program is taken over.
  private func continueAtOnce(_ keys: KeyFixture, _ line: String, _ what: String) throws {
    let next = try keys.run(line)
    #expect(next.code == 0, "\(what), again: \(next)")
  }

  /// Completes the work, and expects an intact repository.
  private func finish(_ keys: KeyFixture, _ work: Work, _ what: String) throws {
    var key = Self.old
    switch work {
    case .add, .remove: break
    case .change: if try !isOpened(keys, by: key) { key = Self.new }
    case .rotate:
      let line = "key rotate --recovery-key last.key --repo repo \(key)"
      try continueAtOnce(keys, line, what)
      #expect(try isOpened(keys, by: "--identity last.key"), "\(what)")
    case .rewrap:
      let line = "\(work.rawValue) --repo repo \(key)"
      try PruneKillTests.runAgain(line, keys.cli, what)
      #expect(try isOpened(keys, by: "--identity next.key"), "\(what)")
    }
    try keys.backUp(key)
    let checked = try keys.run("check --read-data --repo repo --quiet \(key)")
    #expect(checked.code == 0, "\(what): \(checked)")
    try keys.expectRestored(key)
  }
}
