import SystemIO
import TestSupport
import Testing

/// Damage that makes a command use older data: the command succeeds, and its exit status reports
/// the damage.
struct SkippedTests {
  /// The exit status also reports that an older snapshot than requested may have been used.
  @Test func damagedLatestSnapshotIsSkippedAndReported() throws {
    let cli = try DamageTests.make()
    try cli.directory.write("more", at: "tree/d-fourth")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo")
    let ids = try cli.snapshots()
    try cli.flip(byte: 20, of: cli.path(ofSnapshot: ids[1]))
    for line in [
      "restore latest:folders/tree --to back", "restore latest --to planned --dry-run",
      "restore latest:folders/tree --to json --json", "ls latest", "diff \(ids[0]) latest",
      "dump latest:folders/tree/c-third", "dump latest:folders", "stats latest",
      "snapshots show 2999-01-01", "find c-third --snapshot latest",
    ] {
      let outcome = try cli.run("\(line) --repo repo")
      #expect(outcome.code == 13, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("skipped: "), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains(ids[1]), "\(line): \(outcome.errors)")
    }
    // The work is done nevertheless.
    #expect(try cli.names(in: "back") == ["a-first", "b-second", "c-third"])
    #expect(try cli.run("dump latest:folders/tree/c-third --repo repo").output == "small")
    // Missing entries may be in the skipped snapshot.
    for line in [
      "ls latest:folders/tree/d-fourth", "dump latest:folders/tree/d-fourth",
      "restore latest:folders/tree/d-fourth --to none", "restore latest --app none --to none",
    ] {
      let outcome = try cli.run("\(line) --repo repo")
      #expect(outcome.code == 13, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("skipped: "), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("cannot "), "\(line): \(outcome.errors)")
    }
    // An intact snapshot selected by ID gives no warning.
    let named = try cli.run("ls \(ids[0]) --repo repo")
    #expect(named.code == 0 && named.errors.isEmpty, "\(named.errors)")
  }

  /// If no snapshot is readable, the error is damage, not a lack of backups.
  @Test(arguments: ["latest", "latest~1", "2999-01-01"])
  func unreadableSnapshotsAreReported(_ name: String) throws {
    let cli = try DamageTests.make()
    try cli.flip(
      byte: 20, of: cli.path(ofSnapshot: cli.snapshots()[0]))
    let outcome = try cli.run("restore \(name) --to back --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(
      outcome.errors.contains("there is none among the readable snapshots"), "\(outcome.errors)")
  }

  /// A file selected by its device path is taken from the newest snapshot in which its path is
  /// readable.
  @Test func devicePathIsTakenFromTheNewestReadableSnapshot() throws {
    let cli = try CommandLine()
    try cli.directory.write("one", at: "tree/folder/file")
    _ = try cli.succeed("init repo --plain")
    let backup = "backup --layout folder --root tree --repo repo"
    _ = try cli.succeed(backup)
    let first = try cli.packs()
    try cli.directory.write("two!", at: "tree/folder/file")
    _ = try cli.succeed(backup)
    let newest = try #require(try cli.snapshots().last)
    for pack in try cli.packs() where try !first.contains(pack) && DamageTests.holdsTrees(pack) {
      try cli.flip(byte: 0, of: pack)
    }
    let path = cli.directory.string + "/tree/folder/file"
    let outcome = try cli.run("restore \(path) --to back --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    let reported = "skipped: folders/tree/folder/file  (\(newest.prefix(8)))"
    #expect(outcome.errors.contains(reported), "\(outcome.errors)")
    #expect(try cli.directory.read("back") == Array("one".utf8))
    // If its path is readable in no snapshot, the error says so and names the damage.
    for pack in first where try DamageTests.holdsTrees(pack) { try cli.flip(byte: 0, of: pack) }
    let none = try cli.run("restore \(path) --to none --repo repo")
    #expect(none.code == 13, "\(none.errors)")
    #expect(none.errors.contains("no readable snapshot has it"), "\(none.errors)")
  }
}
