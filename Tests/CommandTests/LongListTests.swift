import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Text output for devices with many apps: the largest, and totals of the others.
struct LongListTests {
  private let cli: CommandLine

  /// Makes a user's Flatpak apps: 30 with data and caches of increasing sizes, and five empty ones.
  init() throws {
    cli = try CommandLine(inMemory: true)
    for number in 0..<30 {
      let app = "device/.var/app/org.example.App\(number)"
      let bytes = [UInt8](repeating: 1, count: 1000 * (number + 1))
      try cli.directory.write(bytes, at: ByteString(app + "/data/file"))
      try cli.directory.write(bytes, at: ByteString(app + "/cache/file"))
    }
    for number in 0..<5 {
      let empty = ByteString("device/.var/app/org.example.Empty\(number)/data")
      _ = try Directory.make(path: cli.directory.path(empty))
    }
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters() }
  }

  private func appLines(_ text: String) -> [String] {
    lines(text).filter { $0.contains("org.example.") }
  }

  @Test func backupListsTheTwentyLargestApps() throws {
    let line = "backup --layout flatpak --root device --repo repo"
    for command in [line + " --dry-run", line] {
      let output = try cli.succeed(command)
      let apps = appLines(output)
      #expect(apps.count == 20)
      #expect(apps[0].hasPrefix("org.example.App29 ") && apps[19].hasPrefix("org.example.App10 "))
      // Each of the ten others has 1,000 to 10,000 included bytes and as many excluded ones.
      #expect(output.contains("  10 more, 107 KiB; 5 empty (--all lists them)\n"), "\(output)")
    }
    let all = try cli.succeed(line + " --dry-run --all")
    #expect(appLines(all).count == 35 && !all.contains("more,"))
    let json = try cli.json(line + " --dry-run --json")
    #expect((json["owners"] as? [Any] ?? json["apps"] as? [Any])?.count == 35, "\(json.keys)")
  }

  @Test func appsListsTwenty() throws {
    let output = try cli.succeed("apps --layout flatpak --root device")
    #expect(appLines(output).count == 20)
    #expect(output.contains("  15 more (--all lists them)\n"), "\(output)")
    #expect(appLines(try cli.succeed("apps --layout flatpak --root device --all")).count == 35)
  }

  @Test func classifyListsTheLargestFiles() throws {
    let line = "classify --layout flatpak --root device"
    let output = lines(try cli.succeed(line))
    #expect(output.count == 21)
    #expect(output[0].contains("apps/org.example.App29/"))
    #expect(output[20].hasSuffix("40 more, 410 KiB (--all lists them)"), "\(output[20])")
    #expect(lines(try cli.succeed(line + " --all")).count > 120)
    // A selected part is listed completely.
    #expect(lines(try cli.succeed(line + " App3")).count == 5)
  }

  @Test func purgeListsTheLargestCandidatesAndApps() throws {
    let line = "purge --layout flatpak --root device --level critical"
    let plan = lines(try cli.succeed(line + " --dry-run"))
    #expect(plan.count { $0.contains("org.example.") } == 20)
    #expect(plan.contains { $0.hasPrefix("10 more, ") }, "\(plan)")
    #expect(appLines(try cli.succeed(line + " --dry-run --all")).count == 30)
    let done = try cli.succeed(line + " --yes")
    #expect(appLines(done).count == 20 && done.contains("  10 more, "), "\(done)")
  }

  @Test func restoreListsTheLargestContainers() throws {
    _ = try cli.succeed("backup --layout flatpak --root device --repo repo")
    _ = try Directory.make(path: cli.directory.path("other/.var/app"))
    let line = "restore latest --to-device other --repo repo"
    let plan = try cli.succeed(line + " --dry-run")
    #expect(appLines(plan).count == 20)
    #expect(plan.contains("10 more, ") && plan.contains("; 5 empty (--all lists them)"), "\(plan)")
    #expect(appLines(try cli.succeed(line + " --dry-run --all")).count == 35)
  }

  /// Containers of size 0 are counted in short lists as well.
  @Test func emptyContainersAreCounted() throws {
    for number in 3..<30 {
      try cli.directory.directory.removeTree(ByteString("device/.var/app/org.example.App\(number)"))
    }
    let line = "backup --layout flatpak --root device --repo repo --dry-run"
    let output = try cli.succeed(line)
    #expect(appLines(output).count == 3)
    #expect(output.contains("\n  5 empty (--all lists them)\n"), "\(output)")
    #expect(appLines(try cli.succeed(line + " --all")).count == 8)
  }

  // MARK: - Remarks

  /// Returns the number of lines that begin with some words.
  private func count(_ words: String, in text: String) -> Int {
    lines(text).count { $0.hasPrefix(words) }
  }

  /// Expects the first 20 of 25 lines after some words, and all lines with `--all`.
  private func expectTwenty(
    _ words: String, of line: String, exits code: Int32 = 0,
    run: ((String) throws -> Program.Outcome)? = nil, location: SourceLocation = #_sourceLocation
  ) throws {
    let run = run ?? { try cli.run($0) }
    let outcome = try run(line)
    let text = outcome.output + outcome.errors
    #expect(outcome.code == code, "\(text)", sourceLocation: location)
    #expect(
      count(words, in: text) == 21 && text.contains("\(words)5 more (--all lists them)\n"),
      "\(text)", sourceLocation: location)
    let all = try run(line + " --all")
    let whole = all.output + all.errors
    #expect(
      count(words, in: whole) == 25 && !whole.contains("more ("), "\(whole)",
      sourceLocation: location)
  }

  /// Makes a plain directory with 25 unreadable directories, and a repository that all users may
  /// use.
  private func makeUnreadable() throws {
    for number in 10..<35 {
      try cli.directory.write("x", at: ByteString("tree/locked\(number)/below"))
      let path = cli.directory.path(ByteString("tree/locked\(number)"))
      try Directory.open(path: path).setPermissions(0)
    }
    try cli.directory.write("x", at: "tree/open")
    if Host.userID == 0 {
      _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    }
  }

  @Test func unreadableEntriesAreCounted() throws {
    try makeUnreadable()
    defer { cli.open() }
    try expectTwenty(
      "sandboxctl: warning: not classified: ", of: "classify --layout folder --root tree",
      exits: 3, run: cli.runAsNobody)
    let backup = "backup --layout folder --root tree --repo repo"
    try expectTwenty(
      "sandboxctl: warning: not in the snapshot: ", of: backup, exits: 3, run: cli.runAsNobody)
    let shown = try cli.runAsNobody("snapshots show latest --repo repo")
    let all = try cli.runAsNobody("snapshots show latest --repo repo --all")
    #expect(count("folders/tree/locked", in: shown.output) == 20)
    #expect(shown.output.contains("  5 more (--all lists them)\n"), "\(shown.output)")
    #expect(count("folders/tree/locked", in: all.output) == 25)
  }

  @Test func conflictsOfARestoreAreCounted() throws {
    for number in 10..<35 {
      try cli.directory.write("stored", at: ByteString("tree/dir\(number)/file"))
      try cli.directory.write("stored", at: ByteString("tree/note\(number)"))
      try cli.directory.write("stored", at: ByteString("tree/key\(number).pem"))
    }
    let layout = "--layout folder --root tree --repo repo"
    _ = try cli.succeed("backup \(layout) --quiet --exclude **/*.pem")
    _ = try Directory.make(path: cli.directory.path("into"))
    for number in 10..<35 {
      try cli.directory.write("a file", at: ByteString("into/dir\(number)"))
      try cli.directory.write("present", at: ByteString("into/key\(number).pem"))
    }
    let restore = "restore latest:folders/tree --to into --overwrite always --repo repo"
    try expectTwenty("note: not deleted: ", of: restore + " --delete --dry-run")
    // The same files in the directory itself.
    try expectTwenty(
      "note: not deleted: ",
      of: "restore latest --in-place --delete --dry-run --repo repo")
    let done = try cli.run(restore + " --delete")
    #expect(done.code == 0 && count("note: not deleted: ", in: done.errors) == 21)
  }

  @Test func filesKeptByARestoreAreCounted() throws {
    for number in 10..<35 {
      try cli.directory.write("SQLite format 3\u{0} old", at: ByteString("tree/db\(number)"))
    }
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let restore = "restore latest:folders/tree --to tree --overwrite if-changed --repo repo"
    for (option, shown) in [("", 20), (" --all", 25)] {
      try cli.directory.directory.removeTree("tree")
      for number in 10..<35 {
        let database = ByteString("tree/db\(number)")
        try cli.directory.write("SQLite format 3\u{0} of another state", at: database)
        try cli.directory.write("log", at: database.concatenating("-wal"))
      }
      let output = try cli.succeed(restore + option)
      #expect(count("25 previous entries kept under other names; ", in: output) == 1, "\(output)")
      let kept = lines(output).filter { $0.contains("-wal.before-restore-") }
      #expect(kept.count == shown, "\(output)")
      #expect(kept.allSatisfy { $0.contains("/tree/db") }, "\(output)")
      #expect(output.contains("  5 more (--all lists them)\n") == (shown == 20), "\(output)")
    }
  }

  @Test func filesThatAPurgeCannotDeleteAreCounted() throws {
    for number in 10..<35 {
      let cache = ByteString("device/.var/app/org.example.Last/cache/sub\(number)")
      try cli.directory.write("x", at: cache.appending("file"))
      try Directory.open(path: cli.directory.path(cache)).setPermissions(0o500)
    }
    if Host.userID == 0 {
      _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    }
    defer { cli.open() }
    let line = "purge --layout flatpak --root device --level critical --yes --app Last"
    try expectTwenty(
      "sandboxctl: warning: not deleted: ", of: line, exits: 3, run: cli.runAsNobody)
  }

  /// `check` lists the first findings of each kind of damage, and so do the commands that read
  /// damaged directories.
  @Test func damageIsCounted() throws {
    for number in 10..<35 {
      try cli.directory.write("x\(number)", at: ByteString("tree/dir\(number)/file"))
    }
    let backup = "backup --layout folder --root tree --repo repo --quiet"
    _ = try cli.succeed(backup)
    let packs = try cli.packs()
    try cli.directory.write("top", at: "tree/top")
    _ = try cli.succeed(backup)
    _ = try cli.succeed("forget \(try cli.snapshots()[0]) --repo repo")
    for pack in packs { try FileManager.default.removeItem(atPath: pack) }
    try expectTwenty("lost     ", of: "check --repo repo", exits: 13)
    try expectTwenty("lost     ", of: "check --quiet --repo repo", exits: 13)
    #expect(count("{", in: try cli.run("check --json --repo repo").output) > 25)
    try expectTwenty("sandboxctl: warning: damaged: ", of: "stats latest --repo repo", exits: 13)
    _ = try cli.run("repair packs --repo repo")
    let repair = try cli.run("repair snapshots --dry-run --repo repo")
    #expect(count("folders/tree/dir", in: repair.output) == 20, "\(repair.output)")
    #expect(repair.output.contains("\n  5 more (--all lists them)\n"), "\(repair.output)")
    let all = try cli.run("repair snapshots --dry-run --all --repo repo")
    #expect(count("folders/tree/dir", in: all.output) == 25, "\(all.output)")
  }

  /// A restore is killed at its first step, and its directories are removed before the recovery.
  @Test(.enabled(if: Strace.isPermitted)) func failuresOfARecoveryAreCounted() throws {
    let files = (10..<35).map { ByteString("tree/dir\($0)/file") }
    for file in files { try cli.directory.write("stored", at: file) }
    let device = "--layout folder --root tree"
    _ = try cli.succeed("backup \(device) --repo repo --quiet")
    for file in files { try cli.directory.write("now", at: file) }
    let restore = "restore latest --in-place --overwrite always --no-snapshot --repo repo"
    var isBegun = false
    for call in 1...60 where !isBegun {
      let strace = try Strace("linkat", killingAt: call)
      if try cli.run(restore, under: strace.command).code == 0 { break }
      isBegun = try cli.run("apps \(device)").errors.contains("finishes it")
    }
    #expect(isBegun)
    for file in files { try cli.directory.directory.removeTree(file.parent) }
    let outcome = try cli.run("recover \(device)")
    #expect(outcome.code == 3, "\(outcome.errors)")
    let words = "sandboxctl: warning: not restored: "
    #expect(count(words, in: outcome.errors) == 21, "\(outcome.errors)")
    #expect(outcome.errors.contains("\(words)5 more (--all lists them)\n"), "\(outcome.errors)")
  }

  @Test func pathsOfAnAppAreCounted() throws {
    // The caches in the data of Chromium and its descendants.
    for number in 10..<35 {
      let profile = ByteString("device/.var/app/org.example.App0/config/dir\(number)")
      let bytes = [UInt8](repeating: 1, count: 100 * number)
      try cli.directory.write("x", at: profile.appending("Local State"))
      try cli.directory.write(bytes, at: profile.appending("Cache/file"))
    }
    let line = "uninstall App0 --layout flatpak --root device --dry-run"
    let output = try cli.succeed(line)
    let all = try cli.succeed(line + " --all")
    let paths = lines(all).count { $0.contains("  apps/org.example.App0/data/") }
    #expect(paths > 20, "\(all)")
    #expect(lines(output).count { $0.contains("  apps/org.example.App0/data/") } == 20)
    #expect(output.contains("  \(paths - 20) more, "), "\(output)")
  }

  @Test func statisticsListTheLargestRows() throws {
    _ = try cli.succeed("backup --layout flatpak --root device --repo repo --quiet")
    let output = lines(try cli.succeed("stats latest --repo repo"))
    #expect(output.count == 23 && output[1].hasPrefix("apps/org.example.App29 "), "\(output)")
    #expect(output[21].hasPrefix("10 more, 53.7 KiB (--all"), "\(output)")
    let all = lines(try cli.succeed("stats latest --repo repo --all"))
    #expect(all.count >= 32 && output[22] == all.last, "the total is that of all rows")
  }

  @Test func trashListsTheLargestOperations() throws {
    try cli.directory.write("old", at: "tree/note")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for number in 0..<22 {
      try cli.directory.write([UInt8](repeating: 7, count: 100 + number), at: "tree/note")
      _ = try cli.succeed(
        "restore latest:folders/tree --in-place --overwrite always --no-snapshot --repo repo")
    }
    let line = "trash list --layout folder --root tree"
    let output = lines(try cli.succeed(line))
    #expect(output.count { $0.contains(" restore of ") } == 20, "\(output)")
    #expect(output.last?.hasPrefix("2 more, 201 B (--all") == true, "\(output)")
    #expect(lines(try cli.succeed(line + " --all")).count { $0.contains(" restore of ") } == 22)
  }

  /// Findings are results: listed by kind with counts on standard output.
  @Test func findingsAreListedByKind() throws {
    for number in 0..<25 {
      try cli.directory.directory.directory("device/.var/app").createLink(
        ByteString("org.example.Link\(number)"), to: "/nowhere")
    }
    let outcome = try cli.run("apps --layout flatpak --root device --findings")
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(outcome.output.contains("\n  dangling-link: 25 ("), "\(outcome.output)")
    #expect(outcome.output.contains("    5 more (--all lists them)\n"))
  }
}

extension Substring {
  fileprivate func trimmingCharacters() -> String { String(drop { $0 == " " }) }
}
