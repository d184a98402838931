import Foundation
import SystemIO
import TestSupport
import Testing

/// Operations that are killed at any moment: existing data stays intact, and the next run completes
/// the work. `make test` makes a few kills of each kind, `make test-all` more, and `make soak` runs
/// for longer.
@Suite(.serialized) struct KillTests {
  private static let kills = Sampling.count(Sampling.fewer(5), of: 20)
  private static let backup = "backup --layout folder --root tree --repo repo --quiet"

  @Test func killedBackupDamagesNothing() throws {
    var random = Seeded.fresh()
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain")
    try Self.addFiles(cli, "first", count: 150, &random)
    var moments = Moments(Self.kills)
    try moments.measure { _ = try cli.succeed(Self.backup) }
    var known = [try #require(try cli.snapshots().last): try cli.records("tree")]
    while let moment = moments.next(using: &random) {
      try Self.addFiles(cli, "round \(moments.round)", count: 60, &random)
      let records = try cli.records("tree")
      let isKilled = try moments.run(cli, Self.backup, at: moment)
      // A backup killed after its snapshot was in place is complete.
      let what = "round \(moments.round), \(moment) s"
      let listed = try cli.snapshots()
      let new = Set(listed).subtracting(known.keys)
      #expect(listed.count == known.count + new.count && new.count <= 1, "\(what)")
      #expect(isKilled || new.count == 1, "\(what)")
      for snapshot in new { known[snapshot] = records }
      let check = try cli.run("check --read-data --quiet --repo repo")
      #expect(check.code == 0, "\(what): \(check.output) \(check.errors)")
      let chosen = try #require(listed.randomElement(using: &random))
      try Self.expectRestored(cli, chosen, known[chosen] ?? [:], what)
      if isKilled { moments.count += 1 }
      try moments.measure { _ = try cli.succeed(Self.backup) }
      let latest = try #require(try cli.snapshots().last)
      known[latest] = records
      try Self.expectRestored(cli, latest, records, what)
    }
    #expect(moments.count == Self.kills, "in \(moments.round) rounds")
    for pack in try cli.packs() { try Archive.check(pack) }
  }

  @Test func killedRestoreLeavesNoPartialTarget() throws {
    var random = Seeded.fresh()
    let cli = try Self.prepared(&random)
    let wanted = try cli.records("tree")
    let restore = "restore latest:folders/tree --repo repo --quiet --to "
    let kills = Sampling.count(Sampling.fewer(3), of: 10)
    var moments = Moments(kills)
    try moments.measure { _ = try cli.succeed(restore + "whole") }
    while let moment = moments.next(using: &random) {
      let name = ByteString("back-\(moments.round)")
      if try moments.run(cli, restore + "\(name)", at: moment) { moments.count += 1 }
      // The target is complete or missing.
      if try !cli.isThere(name) {
        try moments.measure { _ = try cli.succeed(restore + "\(name)") }
      }
      #expect(try cli.records(name) == wanted, "round \(moments.round), \(moment) s")
      try cli.directory.directory.removeTree(name)
    }
    #expect(moments.count == kills, "in \(moments.round) rounds")
    // The last kill may be after the target was moved into place and before the staging directory
    // was removed: the next restore removes it.
    _ = try cli.succeed(restore + "last")
    try cli.directory.directory.removeTree("last")
    #expect(try cli.names(in: "") == ["home", "original", "repo", "tree", "whole"])
  }

  /// Into an existing directory, at random moments: each file is completely old or completely new,
  /// and the next restore completes the work.
  @Test func killedRestoreIntoADirectoryKeepsFilesIntact() throws {
    var random = Seeded.fresh()
    let cli = try Self.prepared(&random)
    let (older, wanted) = (try cli.records("original"), try cli.records("tree"))
    var moments = Moments(Self.kills)
    try cli.copy("original", to: "into")
    try moments.measure { _ = try cli.succeed(Self.merge) }
    while let moment = moments.next(using: &random) {
      try cli.directory.directory.removeTree("into")
      try cli.copy("original", to: "into")
      if try moments.run(cli, Self.merge, at: moment) { moments.count += 1 }
      try Self.expectWhole(cli, older, wanted, "round \(moments.round), \(moment) s")
      try moments.measure { _ = try cli.succeed(Self.merge) }
      #expect(try cli.records("into") == wanted, "round \(moments.round), \(moment) s")
    }
    #expect(moments.count == Self.kills, "in \(moments.round) rounds")
  }

  /// The same, killed at each call that changes the target.
  @Test(.enabled(if: Strace.isPermitted))
  func restoreIntoADirectoryIsKilledAtEachChange() throws {
    var random = Seeded(5)
    let cli = try Self.prepared(&random, count: 6)
    let (older, wanted) = (try cli.records("original"), try cli.records("tree"))
    var kills = 0
    for number in Sampling.steps(4, "kills").prefix(while: { $0 <= 200 }) {
      try cli.copy("original", to: "into")
      let strace = try Strace("renameat,renameat2,unlinkat", killingAt: number)
      let outcome = try cli.run(Self.merge, under: strace.command)
      try Self.expectWhole(cli, older, wanted, "call \(number)")
      if outcome.code != 0 {
        kills += 1
        _ = try cli.succeed(Self.merge)
      }
      #expect(try cli.records("into") == wanted, "call \(number)")
      try cli.directory.directory.removeTree("into")
      if outcome.code == 0 { break }
    }
    #expect((8 / Sampling.stride(4)..<200).contains(kills), "\(kills)")
  }

  // MARK: - Preparation

  private static let merge =
    "restore latest:folders/tree --to into --repo repo --overwrite if-changed --delete --quiet"

  /// Makes a repository with a backup of the directory `tree`, and `original`, the directory before
  /// files of it were changed, added and removed.
  private static func prepared(
    _ random: inout Seeded, count: Int = 150
  ) throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try addFiles(cli, "first", count: count, &random)
    try addFiles(cli, "goes", count: count / 3, &random)
    try cli.copy("tree", to: "original")
    try cli.directory.directory.directory("tree").removeTree("goes")
    try addFiles(cli, "first", count: count * 2 / 3, &random)
    try addFiles(cli, "new", count: count / 3, &random)
    // A file instead of a directory.
    try cli.directory.write("file", at: "tree/goes")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(backup)
    return cli
  }

  /// Adds files of up to 8 KB in directories of fifty, and one of 1 MB.
  private static func addFiles(
    _ cli: CommandLine, _ name: String, count: Int, _ random: inout Seeded
  ) throws {
    let top = ByteString("tree").appending(ByteString(name))
    for number in 0..<count {
      let directory = top.appending(ByteString("\(number / 50)"))
      let bytes = random.bytes(Int.random(in: 0...8_000, using: &random))
      try cli.directory.write(bytes, at: directory.appending(ByteString("file \(number)")))
    }
    try cli.directory.write(random.bytes(1_000_000), at: top.appending("large"))
  }

  // MARK: - Checks

  private static func expectRestored(
    _ cli: CommandLine, _ snapshot: String, _ wanted: [ByteString: TreeRecord], _ what: String
  ) throws {
    _ = try cli.succeed("restore \(snapshot):folders/tree --to back --repo repo --quiet")
    #expect(try cli.records("back") == wanted, "\(what): \(snapshot)")
    try cli.directory.directory.removeTree("back")
  }

  /// Expects each entry of `into` to be old or as stored, and no stored entry to be missing.
  private static func expectWhole(
    _ cli: CommandLine, _ older: [ByteString: TreeRecord], _ wanted: [ByteString: TreeRecord],
    _ what: String
  ) throws {
    let found = try cli.records("into").filter {
      !$0.key.description.hasPrefix(".sandboxctl-restore-")
    }
    for path in Set(older.keys).union(wanted.keys).union(found.keys) {
      guard let entry = found[path] else {
        #expect(older[path] == nil || wanted[path] == nil, "\(what): \(path) is gone")
        continue
      }
      let isWhole = [older[path], wanted[path]].contains { other in
        // The times and modes of directories are set at the end.
        entry.kind == .directory ? other?.kind == .directory : other == entry
      }
      #expect(isWhole, "\(what): \(path) is neither old nor new")
    }
  }
}

extension CommandLine {
  /// Makes a copy of a directory with all its metadata, and the directories above it.
  func copy(_ from: String, to path: String) throws {
    let above = ByteString(path).components.dropLast().reduce(directory.path) { $0.appending($1) }
    _ = try Directory.make(path: above)
    let outcome = try Program.run("cp", ["-a", from, path], in: directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Returns all entries below a path of the directory.
  func records(_ path: ByteString) throws -> [ByteString: TreeRecord] {
    try TreeRecord.all(in: directory, path)
  }
}
