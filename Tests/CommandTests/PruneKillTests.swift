import Foundation
import SystemIO
import TestSupport
import Testing

/// `forget`, `prune` and the repairs, killed at calls that change the repository: every remaining
/// snapshot is restored completely, and the next run completes the work.
///
/// The calls are those of one complete run, and the twenty kills of each kind are spread evenly
/// over them; over encrypted repositories two.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct PruneKillTests {
  private static let kills = Sampling.count(TestEncryption.isOn ? 2 : 20, of: 24)
  private static let calls = "mkdirat,openat,write,ftruncate,fsync,renameat,unlinkat"

  /// A command, and the state of the repository in which it is killed.
  enum Work: String, CaseIterable, Sendable {
    case forget = "forget --keep-last 2 --quiet"
    case prune = "prune --quiet"
    case forgetAndPrune = "forget --keep-last 1 --prune --quiet"
    case repairPacks = "repair packs --quiet"
    case repairSnapshots = "repair snapshots --forget --quiet"
    case repairIndex = "repair index --quiet"

    /// The number of snapshots that a complete run leaves.
    var remaining: Int {
      switch self {
      case .forget: 2
      case .forgetAndPrune: 1
      default: 3
      }
    }

    /// Whether each run makes snapshots with other ids: encryption gives the same content a
    /// different id each time.
    var makesOtherIDs: Bool { TestEncryption.isOn && self == .repairSnapshots }

    var isRepair: Bool { [.repairPacks, .repairSnapshots, .repairIndex].contains(self) }
  }

  /// Makes three snapshots, each with its own files; for a prune, also data that no snapshot needs,
  /// and for a repair a pack with a damaged file, or a damaged index.
  static func prepare(_ work: Work) throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(11)
    _ = try cli.succeed("init repo --plain --no-default")
    for round in 0..<4 {
      for number in round..<(round + 5) {
        try cli.directory.write(random.bytes(60_000), at: ByteString("tree/\(number)"))
      }
      try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    }
    // The oldest is removed, so that its data is unused.
    let oldest = try #require(try cli.snapshots().first)
    try FileManager.default.removeItem(atPath: cli.path(ofSnapshot: oldest))
    switch work {
    case .forget, .prune, .forgetAndPrune: break
    case .repairIndex: try damageIndex(cli)
    case .repairPacks: try damage(cli)
    case .repairSnapshots:
      try damage(cli)
      #expect(try cli.run("repair packs --repo repo --quiet").code == 13)
    }
    for name in ["repo", "home"] { try cli.copy(name, to: "pristine/\(name)") }
    return cli
  }

  /// Damages a file of the last backup, which stored five, and records that.
  private static func damage(_ cli: CommandLine) throws {
    let dated = try cli.packs().map { path in
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      return (path, attributes[.modificationDate] as? Date, attributes[.size] as? Int ?? 0)
    }
    let last = dated.filter { $0.2 > 200_000 }.max { $0.1 ?? .distantPast < $1.1 ?? .distantPast }
    let path = try #require(last).0
    var bytes = try #require(FileManager.default.contents(atPath: path))
    bytes[bytes.count / 2] ^= 0xff
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(try cli.run("check --read-data --repo repo --quiet").code == 13)
  }

  /// Removes an index object, and damages another.
  private static func damageIndex(_ cli: CommandLine) throws {
    let names = try cli.names(in: "repo/index").sorted()
    try #require(names.count > 1)
    let paths = names.map { "\(cli.directory.string)/repo/index/\($0)" }
    try FileManager.default.removeItem(atPath: paths[0])
    var bytes = try #require(FileManager.default.contents(atPath: paths[1]))
    bytes[bytes.count / 2] ^= 0xff
    try bytes.write(to: URL(fileURLWithPath: paths[1]))
  }

  private static func beginAgain(_ cli: CommandLine) throws {
    for name in ["repo", "home"] {
      try cli.directory.directory.removeTree(ByteString(name))
      try cli.copy("pristine/\(name)", to: name)
    }
  }

  /// Returns what each snapshot restores: its entries, and whether all were restored.
  static func restored(
    _ cli: CommandLine, from repository: String = "repo"
  ) throws -> [String: [ByteString: TreeRecord]] {
    var restored: [String: [ByteString: TreeRecord]] = [:]
    for id in try cli.snapshots(repository) {
      let outcome = try cli.run("restore \(id):folders/tree --to back --repo \(repository) --quiet")
      #expect([0, 13].contains(outcome.code), "\(id): \(outcome.errors)")
      restored[id] = try cli.records("back").filter { $0.value.kind != .directory }
      try cli.directory.directory.removeTree("back")
    }
    return restored
  }

  /// Lets all leases expire.
  private static func expireLeases(_ cli: CommandLine) throws {
    let leases = cli.directory.string + "/repo/leases"
    for name in try FileManager.default.subpathsOfDirectory(atPath: leases)
    where name.hasSuffix("/alive") {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -3700)], ofItemAtPath: leases + "/" + name)
    }
  }

  /// Runs a command an hour later. A right to remove objects without a heartbeat is given one, and
  /// thus another hour.
  static func runAgain(_ line: String, _ cli: CommandLine, _ what: String) throws {
    try expireLeases(cli)
    var next = try cli.run(line)
    if next.code == 11 {
      try expireLeases(cli)
      next = try cli.run(line)
    }
    #expect([0, 13].contains(next.code), "\(what), again: \(next.errors)")
  }

  @Test(arguments: Work.allCases) func killedWorkLosesNothing(_ work: Work) throws {
    let cli = try Self.prepare(work)
    let line = work.rawValue + " --repo repo"
    var wanted = try Self.restored(cli)
    let old = Set(wanted.keys)
    #expect(old.count == 3)
    try Self.beginAgain(cli)
    let tracer = try Strace(recording: Self.calls)
    let complete = try cli.run(line, under: ["taskset", "-c", "0"] + tracer.command)
    #expect([0, 13].contains(complete.code), "\(complete.errors)")
    // A repair makes the same snapshots each time, apart from their ids in an encrypted repository.
    let after = try Self.restored(cli)
    #expect(after.count == work.remaining)
    wanted.merge(after) { before, after in
      #expect(before == after)
      return before
    }
    // From the lease on.
    let calls = Array(try tracer.recorded().drop { $0.name != "mkdirat" })
    try #require(calls.count > Self.kills, "\(calls.count)")
    var killed = 0
    for kill in 0..<Self.kills {
      let call = calls[(kill * calls.count + calls.count / 2) / Self.kills]
      let what = "\(work), killed at \(call.name) \(call.number): \(call.arguments)"
      try Self.beginAgain(cli)
      let strace = try Strace(call.name, killingAt: call.number)
      let outcome = try cli.run(line, under: ["taskset", "-c", "0"] + strace.command)
      if [137, -9].contains(outcome.code) { killed += 1 }
      let found = try Self.restored(cli)
      #expect(found.count >= work.remaining, "\(what)")
      #expect(Set(after.keys).intersection(old).isSubset(of: found.keys), "\(what)")
      for (id, records) in found {
        let isNew = wanted[id] == nil && work.makesOtherIDs
        #expect(
          isNew ? after.values.contains(records) : records == wanted[id], "\(what): snapshot \(id)")
      }
      if !work.isRepair {
        let check = try cli.run("check --read-data --quiet --repo repo")
        #expect(check.code == 0, "\(what): \(check.output) \(check.errors)")
      }
      try Self.runAgain(line, cli, what)
      let completed = try Self.restored(cli)
      if work.makesOtherIDs {
        #expect(completed.count == after.count, "\(what), again")
        #expect(after.values.allSatisfy(completed.values.contains), "\(what), again")
      } else {
        #expect(completed == after, "\(what), again")
      }
    }
    #expect(killed >= Self.kills * 3 / 4, "\(killed) of \(Self.kills)")
  }
}
