import SystemIO
import TestSupport
import Testing

/// `key rewrap` of snapshots that this host accepts by their ids, killed at calls that change the
/// repository or the host's records: the snapshots can be restored at any time, the same command
/// continues at once, and all of them are still accepted.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct RewrapKillTests {
  private static let kills = Sampling.count(4, of: 24)
  /// Calls that only read or create are omitted: most of them belong to listings.
  private static let calls = "mkdirat,write,ftruncate,fsync,renameat,unlinkat"
  private static let key = "--repo repo --passphrase-file old"
  private static let rewrap = "key rewrap --quiet \(key)"
  private static let rounds = ["0", "1", "2"]

  private let keys: KeyFixture
  private var cli: CommandLine { keys.cli }

  /// Makes snapshots of another host, whose signer this one does not trust, and accepts each.
  init() throws {
    keys = try KeyFixture()
    try keys.writeTree(files: 2, of: 20_000, seed: 43)
    _ = try Directory.make(path: cli.directory.path("other-home"))
    let home = ["HOME": cli.directory.string + "/other-home"]
    let backup = "backup --layout folder --root tree --quiet \(Self.key)"
    for round in Self.rounds {
      try cli.directory.write(round, at: "tree/round")
      let made = try keys.run(backup.split(separator: " ").map(String.init), environment: home)
      try #require(made.code == 0, "\(made)")
    }
    try keys.succeed("key trust \(Self.key)")
    try #require(try accepted().isEmpty)
    try keys.succeed("key trust --snapshot all \(Self.key)")
    try keys.succeed("key rotate --recovery-key next.key \(Self.key)")
    for name in ["repo", "home"] { try cli.copy(name, to: "pristine/\(name)") }
  }

  private func beginAgain() throws {
    for name in ["repo", "home"] {
      try cli.directory.directory.removeTree(ByteString(name))
      try cli.copy("pristine/\(name)", to: name)
    }
  }

  /// Returns the rounds of the snapshots whose content is returned without '--allow-unsigned'.
  private func accepted() throws -> [String] {
    let lines = try keys.succeed("snapshots --json \(Self.key)").split(separator: "\n")
    let ids = try lines.compactMap { try CommandLine.object($0)["id"] as? String }
    return try ids.compactMap { id in
      let outcome = try keys.run("dump \(id):folders/tree/round \(Self.key)")
      return outcome.code == 0 ? outcome.output : nil
    }.sorted()
  }

  /// Runs the command under strace on one processor, so that all calls are of one thread.
  private func run(under tracer: Strace) throws -> Program.Outcome {
    try cli.run(Self.rewrap, under: ["taskset", "-c", "0"] + tracer.command)
  }

  @Test func acceptedSnapshotsStayAccepted() throws {
    let tracer = try Strace(recording: Self.calls)
    let complete = try run(under: tracer)
    #expect(try complete.code == 0 && accepted() == Self.rounds, "\(complete)")
    let recorded = try tracer.recorded()
    // From the first new snapshot until the key has no older identity, which is how long the right
    // is held.
    let first = try #require(recorded.firstIndex { $0.isRename(to: ".json.age") })
    let last = try #require(recorded.lastIndex { $0.isRename(to: "repository.json") })
    let calls = Array(recorded[first...last])
    try #require(calls.count > Self.kills, "\(calls.count)")
    var killed = 0
    for kill in 0..<Self.kills {
      let call = calls[(kill * calls.count + calls.count / 2) / Self.kills]
      let what = "killed at \(call.name) \(call.number): \(call.arguments)"
      try beginAgain()
      let outcome = try run(under: try Strace(call.name, killingAt: call.number))
      if [137, -9].contains(outcome.code) { killed += 1 }
      #expect(try Set(accepted()) == Set(Self.rounds), "\(what)")
      // The right of the killed program is taken over.
      let next = try keys.run(Self.rewrap)
      #expect(next.code == 0, "\(what): \(next)")
      #expect(try accepted() == Self.rounds, "\(what), again")
      // Its other leases may be those of a program that began to write before the rotation.
      try PruneKillTests.runAgain(Self.rewrap, cli, what)
      let report = try CommandLine.object(keys.succeed("key rewrap --json \(Self.key)"))
      #expect(report["older_identities"] as? Int == 0, "\(what): \(report)")
      #expect(try accepted() == Self.rounds, "\(what), an hour later")
      let checked = try keys.run("check --read-data --quiet \(Self.key)")
      #expect(checked.code == 0, "\(what): \(checked)")
    }
    #expect(killed > 0)
  }
}

extension Strace.Call {
  fileprivate func isRename(to name: String) -> Bool {
    self.name == "renameat" && arguments.contains(name)
  }
}
