import ArchiveStore
import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// `forget`, `snapshots pin` and `unpin` on the command line.
struct ForgetTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private var directory: String { cli.directory.string + "/repo" }

  /// Writes a snapshot without content. Returns its id.
  @discardableResult
  private func make(
    _ time: String, sequence: UInt64 = 0, tags: [String] = [], reason: Reason = .manual,
    apps: [String] = [], device: String = "a", host: String? = nil, policy: String = "flatpak",
    version: Int? = nil
  ) throws -> String {
    let storage = try LocalStorage(path: ByteString(directory))
    let repository = try Repository.open(storage)
    var snapshot = Snapshot(
      repository: repository.id, source: Blake2b.hash(Array(device.utf8)), sequence: sequence,
      time: try #require(Timestamp(rfc3339: time)), host: host ?? "host-\(device)", user: "user",
      device: DeviceRecord(
        identity: device, platform: "linux", layout: "flatpak", root: ByteString("/" + device)),
      scope: apps.isEmpty ? .device : .apps(apps), reason: reason,
      policy: PolicyRecord(name: policy, digest: Blake2b.hash([])),
      tree: TreeReference(Blake2b.hash([])), program: "test")
    snapshot.tags = tags
    snapshot.apps = apps.map { AppRecord(identifier: $0, containers: ["x"]) }
    let text = snapshot.json.compact.replacing(
      "\"version\":1", with: "\"version\":\(version ?? 1)", maxReplacements: 1)
    let content = Array(text.utf8) + [UInt8(ascii: "\n")]
    let bytes = try TestEncryption.stored(content)
    let id = Blake2b.hash(bytes).hex
    try cli.directory.write(bytes, at: ByteString("repo/snapshots/" + file(id)))
    return id
  }

  /// Makes a snapshot on each of the first days of January 2026, at noon.
  private func january(_ days: Int) throws -> [String] {
    try (1...days).map { try make("2026-01-\($0 < 10 ? "0" : "")\($0)T12:00:00Z") }
  }

  private func names(_ directory: String) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: self.directory + "/" + directory))
  }

  private func present() throws -> Set<String> {
    Set(try names("snapshots").map { String($0.prefix(64)) })
  }

  /// The name of the file of a snapshot.
  private func file(_ id: String) -> String { "\(id).json\(TestEncryption.suffix)" }

  private func short(_ id: String) -> String { String(id.prefix(8)) }

  // MARK: - Rules

  @Test func tableNamesTheRulesThatKeepEachSnapshot() throws {
    let ids = try january(5)
    let line = "forget --keep-last 1 --keep-daily 2 --keep-weekly 2 --repo repo"
    let dry = try cli.succeed(line + " --dry-run")
    #expect(
      dry == """
        user@host-a:/a, scope device: keep 2, remove 3
          action  id        time              kept by
          remove  \(short(ids[0]))  2026-01-01 12:00
          remove  \(short(ids[1]))  2026-01-02 12:00
          remove  \(short(ids[2]))  2026-01-03 12:00
          keep    \(short(ids[3]))  2026-01-04 12:00  daily, weekly
          keep    \(short(ids[4]))  2026-01-05 12:00  last, daily, weekly

        would remove 3 of 5 snapshots

        """)
    #expect(try present() == Set(ids))
    let reported = try cli.succeed(line)
    #expect(reported == dry.replacing("would remove", with: "removed"))
    #expect(try present() == [ids[3], ids[4]])
    #expect(try names("leases").isEmpty)
    #expect(try cli.succeed(line).hasSuffix("removed 0 of 2 snapshots\n"))
    #expect(try cli.succeed(line + " --quiet").isEmpty)
    #expect(try cli.snapshots() == [ids[3], ids[4]])
  }

  @Test func slotsFollowTheTimeZoneOfTheHost() throws {
    // 23:30 and 0:30 in UTC are one day in Tokyo and two in UTC. The oldest is kept in any case.
    let ids = try ["01T10:00", "10T23:30", "11T00:30"].map { try make("2026-01-\($0):00Z") }
    for (zone, removed) in [("UTC", 0), ("Asia/Tokyo", 1), ("America/New_York", 1)] {
      let outcome = try cli.run(
        ["forget", "--keep-daily", "9", "--repo", "repo", "--dry-run"], environment: ["TZ": zone])
      #expect(outcome.output.hasSuffix("would remove \(removed) of 3 snapshots\n"), "\(zone)")
    }
    #expect(try present() == Set(ids))
  }

  @Test func groupsAndFiltersLimitTheRules() throws {
    let first = try january(3)
    let other = try make("2025-01-01T00:00:00Z", device: "b")
    let app = try make("2025-01-02T00:00:00Z", tags: ["x"], apps: ["org.example.notes"])
    let all = Set(first + [other, app])
    let line = "forget --keep-last 1 --repo repo --dry-run "
    for (options, kept, count) in [
      ("", 3, 5), ("--group-by device", 2, 5), ("--group-by scope", 2, 5),
      ("--group-by tags", 2, 5), ("--host host-a", 2, 4), ("--host host-b --host host-a", 3, 5),
      ("--tag x", 1, 1), ("--tag x,y", 0, 0), ("--app notes", 1, 1), ("--host nobody", 0, 0),
    ] {
      let summary = try cli.succeed(line + options)
      #expect(
        summary.hasSuffix(
          "would remove \(count - kept) of \(count) snapshot\(count == 1 ? "" : "s")\n"),
        "\(options): \(summary)")
    }
    let one = try cli.run(
      ["forget", "--keep-last", "1", "--group-by", "", "--repo", "repo", "--dry-run"])
    #expect(one.output.contains("all snapshots: keep 1, remove 4\n"), "\(one.output)")
    #expect(one.output.contains("  user@host-b:/b  "), "\(one.output)")
    let untagged = try cli.run(
      ["forget", "--keep-tag", "", "--group-by", "", "--repo", "repo", "--dry-run"])
    #expect(untagged.output.contains("  no tags\n"), "\(untagged.output)")
    #expect(try present() == all)
  }

  /// A schedule must not remove snapshots of another host, which may be a clone with the same
  /// machine ID.
  @Test func thisHostIsKnownByItsNameAlone() throws {
    let device = "place:\(Host.machineID ?? "0123"):flatpak:/a"
    let former = try (1...3).map {
      try make("2026-01-0\($0)T12:00:00Z", device: device, host: "former")
    }
    let own = try (1...3).map {
      try make("2026-02-0\($0)T12:00:00Z", device: device, host: Host.name)
    }
    let line = "forget --keep-last 1 --this-host --repo repo"
    #expect(try cli.succeed(line).hasSuffix("removed 2 of 3 snapshots\n"))
    #expect(try present() == Set(former + [own[2]]))
    let both = line + " --host former --dry-run"
    let apart = try cli.run(both)
    #expect(apart.output.hasSuffix("would remove 2 of 4 snapshots\n"), "\(apart)")
    #expect(apart.errors.contains("'--group-by device,scope' makes them one"), "\(apart)")
    let together = try cli.run(both + " --group-by device,scope")
    #expect(together.output.hasSuffix("would remove 3 of 4 snapshots\n"), "\(together)")
    #expect(!together.errors.contains("--group-by"), "\(together)")
    let named = try cli.run("forget \(short(own[2])) --this-host --repo repo")
    #expect(named.code == 2 && named.errors.contains("selected by '--this-host'"), "\(named)")
  }

  /// Machines that were cloned with their machine ID back up one device; a host that was renamed
  /// does not.
  @Test func latestOfClonedMachinesIsReported() throws {
    let device = "place:0123:flatpak:/a"
    for (day, host) in ["former", "present", "former"].enumerated() {
      let id = try make(
        "2026-01-0\(day + 1)T12:00:00Z", sequence: UInt64(day + 1), device: device, host: host)
      let outcome = try cli.run("snapshots show latest --repo repo")
      #expect(outcome.output.contains(id), "\(outcome)")
      let isReported = outcome.errors.contains("on 'former'; other devices have ")
      #expect(isReported == (day == 2), "\(outcome)")
    }
  }

  /// The configuration can set an empty text, which is meaningful for this option.
  @Test func aConfiguredGroupingMayBeEmpty() throws {
    _ = try january(2) + [make("2026-02-01T00:00:00Z", device: "b")]
    try cli.directory.write(
      "forget:\n  group-by: \"\"\n", at: "home/.config/sandboxctl/config.yaml")
    let output = try cli.succeed("forget --keep-last 1 --repo repo --dry-run")
    #expect(output.contains("all snapshots: keep 1, remove 2\n"), "\(output)")
  }

  /// A clock that was ahead makes a snapshot of another source the latest for years.
  @Test func latestIsNamedIfItIsDatedInTheFuture() throws {
    let ids = try [make("2026-01-01T12:00:00Z"), make("2970-01-01T12:00:00Z")]
    let warning =
      "'latest' is \(short(ids[1])), which is dated in the future (2970-01-01 12:00): "
      + "\(short(ids[0])) (2026-01-01 12:00) may be newer"
    let outcome = try cli.run("snapshots show latest --repo repo")
    #expect(outcome.errors.contains(warning), "\(outcome)")
    #expect(try !cli.run("snapshots show \(ids[1]) --repo repo").errors.contains("future"))
    // Within a source the sequence decides.
    try make("2026-01-02T12:00:00Z", sequence: 1, device: "b")
    try make("2980-01-02T12:00:00Z", sequence: 2, device: "b")
    #expect(try !cli.run("snapshots show latest --repo repo").errors.contains("future"))
  }

  /// A pinned snapshot that does not exist was not removed by a program: it is lost.
  @Test func aLostPinnedSnapshotIsNamed() throws {
    let ids = try january(4)
    _ = try cli.succeed("snapshots pin \(ids[0]) --repo repo")
    for name in try cli.names(in: "repo/snapshots") where "\(name)".hasPrefix(ids[0]) {
      let path = cli.directory.string + "/repo/snapshots/\(name)"
      try FileManager.default.removeItem(atPath: path)
    }
    let outcome = try cli.run("forget --keep-last 2 --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(outcome.errors.contains("warning: the pinned snapshot \(ids[0]) is lost"))
    #expect(try present() == Set(ids[2...]))
    _ = try cli.succeed("snapshots unpin \(ids[0]) --repo repo")
    _ = try cli.succeed("forget --keep-last 2 --repo repo")
  }

  @Test func groupIsNotEmptiedByRules() throws {
    let ids = try january(3) + [make("2026-02-01T00:00:00Z", tags: ["x"], device: "b")]
    _ = try make("2026-01-15T00:00:00Z", device: "b")
    let line = "forget --keep-tag x --repo repo"
    let outcome = try cli.run(line)
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(
      outcome.errors.contains(
        "warning: no rule keeps a snapshot of user@host-a:/a, scope device: all 3 are kept"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: add a rule such as '--keep-last 1', or '--allow-last'"))
    #expect(outcome.output.contains("  refused\n"))
    #expect(try present() == Set(ids))
    #expect(try cli.run(line + " --allow-last").code == 0)
    #expect(try present() == [ids[3]])
  }

  @Test(arguments: [
    ([], "no rule says which snapshots to keep"),
    (["--keep-last", "0"], "no rule says which snapshots to keep"),
    (["--keep-oldest"], "no rule says which snapshots to keep"),
    (["--keep-daily=-1"], "'-1'"), (["--keep-daily", "many"], "'many' is invalid"),
    (["--keep-within", "1w"], "'1w' is invalid"), (["--keep-tag", "a,,b"], "'a,,b' is invalid"),
    (["--keep-last", "1", "--group-by", "colour"], "'colour' is invalid"),
    (["yesterday"], "'yesterday' does not name a snapshot"),
  ])
  func wrongUsageIsRefused(_ words: [String], _ says: String) throws {
    let ids = try january(2)
    let outcome = try cli.run(["forget", "--repo", "repo"] + words)
    #expect(outcome.code == 2 && outcome.output.isEmpty)
    #expect(outcome.errors.contains(says), "\(outcome.errors)")
    #expect(try present() == Set(ids))
  }

  @Test func futureSnapshotIsKeptAndNamed() throws {
    let ids = try january(3) + [make("2199-01-01T00:00:00Z", sequence: 9)]
    let outcome = try cli.run("forget --keep-last 1 --repo repo")
    #expect(outcome.code == 0)
    #expect(
      outcome.errors.contains(
        "warning: the snapshot \(short(ids[3])) is dated in the future (2199-01-01 00:00): "),
      "\(outcome.errors)")
    #expect(try present() == [ids[2], ids[3]])
  }

  @Test func automaticSnapshotsFollowThePolicy() throws {
    let old = try make("2026-01-01T00:00:00Z", reason: .preUpdate, apps: ["a"])
    let unknown = try make("2026-01-02T00:00:00Z", reason: .uninstall, policy: "elsewhere")
    let now = Host.now()
    let new = try [Reason.preUpdate, .preRestore, .preRollback, .uninstall].enumerated().map {
      try make(
        Timestamp(seconds: now.seconds - 86_400 - Int64($0)).rfc3339, reason: $1, apps: ["a"])
    }
    let regular = try january(2)
    let reported = try cli.succeed("forget --keep-last 1 --repo repo")
    #expect(
      reported.split(separator: "\n").count { $0.hasSuffix("  retain 31d") } == 4, "\(reported)")
    // For another host, the layout's default policy is used.
    #expect(try present() == Set(new + [regular[1]]), "\(old) \(unknown)")
    // The user's policies apply.
    try cli.directory.write(
      "overlay: all\nschema: 1\nretain: {pre-restore-snapshot: 1h}\n",
      at: "home/.config/sandboxctl/policies/mine.yaml")
    _ = try cli.succeed("forget --keep-last unlimited --repo repo")
    #expect(try present() == Set(new + [regular[1]]).subtracting([new[1]]))
  }

  /// Without the policy it is unknown which automatic snapshots may be removed.
  @Test func mistakeInAPolicyIsAnError() throws {
    try make("2026-01-01T00:00:00Z", reason: .preUpdate, apps: ["a"])
    let regular = try january(3)
    try cli.directory.write(
      "overlay: all\nschema: 1\nretain: {pre-restore-snapshot: 1 fortnight}\n",
      at: "home/.config/sandboxctl/policies/mine.yaml")
    let before = try present()
    for options in ["", " --dry-run", " --json"] {
      let outcome = try cli.run("forget --keep-last 1 --repo repo" + options)
      #expect(outcome.code == 1 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.errors.contains("mine.yaml:3:"), "\(outcome.errors)")
    }
    #expect(try present() == before && before.count == 4)
    // Only automatic snapshots need a policy.
    _ = try cli.succeed("forget --keep-last 1 --host host-b --repo repo")
    _ = try cli.succeed("forget \(short(regular[0])) --repo repo")
    #expect(try present().count == 3)
  }

  @Test func helpNamesTheDefaultGrouping() throws {
    let help = try cli.succeed("forget --help")
    #expect(help.contains("(default: device,host,scope)") && !help.contains("SnapshotGrouping"))
  }

  // MARK: - Sizes

  /// The bytes that a removal frees are those that only the removed snapshots need.
  @Test func sizesAreThoseOfTheRemovedSnapshots() throws {
    var random = Seeded(8)
    try cli.directory.write(random.bytes(300_000), at: "tree/kept")
    for size in [100_000, 200_000, 50_000] {
      try cli.directory.write(random.bytes(size), at: "tree/changed")
      try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    }
    let line = "forget --keep-last 1 --sizes --dry-run --repo repo"
    let summary = try cli.jsonLines(line + " --json").last?["summary"] as? [String: Any]
    let freed = try #require(summary?["freed"] as? [String: Int])
    let bytes = try #require(freed["bytes"])
    #expect((300_000...303_000).contains(bytes), "two versions of the file and of directories")
    let growth = try cli.jsonLines("stats --growth --json --repo repo")
    let alone = growth.dropLast().compactMap { ($0["alone"] as? [String: Int])?["bytes"] }
    #expect(alone.count == 3 && alone[0] + alone[1] == bytes)
    let text = try cli.succeed(line)
    #expect(
      text.contains("would remove 2 of 3 snapshots\nonly the removed snapshots need "), "\(text)")
    // The prune frees what was predicted.
    let stored = try #require(freed["stored_bytes"])
    _ = try cli.succeed("forget --keep-last 1 --repo repo")
    let plan = try cli.jsonLines("prune --dry-run --json --repo repo").last
    #expect(plan?["unused_bytes"] as? Int == stored)
  }

  // MARK: - Names

  @Test func namedSnapshotsAreRemoved() throws {
    let ids = try january(5)
    let outcome = try cli.run("forget \(short(ids[1])) latest~1 --keep-last 9 --repo repo")
    #expect(
      outcome.errors.contains(
        "note: 'sandboxctl prune --repo repo' removes the data that only they needed\n"),
      "\(outcome.errors)")
    #expect(
      outcome.output == """
        user@host-a:/a, scope device: keep 3, remove 2
          action  id        time              kept by
          remove  \(short(ids[1]))  2026-01-02 12:00
          remove  \(short(ids[3]))  2026-01-04 12:00

        removed 2 of 5 snapshots

        """)
    #expect(try present() == [ids[0], ids[2], ids[4]])
    let missing = try cli.run("forget \(ids[1]) --repo repo")
    #expect(missing.code == 1 && missing.errors.contains("cannot find the snapshot"))
  }

  @Test func lastSnapshotOfAGroupIsRefused() throws {
    let ids = try january(2)
    let other = try make("2026-02-01T00:00:00Z", device: "b")
    // A snapshot dated in the future does not protect the others in its group.
    let past = try make("2026-02-01T00:00:00Z", device: "c")
    let future = try make("2996-02-01T00:00:00Z", device: "c")
    let alone = try make("2996-02-01T00:00:00Z", device: "d")
    for line in ["\(ids[0]) \(ids[1])", other, past, alone].map({ "forget \($0)" }) {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 1 && outcome.output.isEmpty)
      #expect(outcome.errors.contains("no other snapshot of the same group is left"))
      #expect(outcome.errors.contains("hint: add '--allow-last'"))
    }
    #expect(try present().count == 6)
    #expect(try cli.run("forget \(future) --repo repo").code == 0)
    #expect(try cli.run("forget \(past) \(alone) --allow-last --repo repo").code == 0)
    #expect(try cli.run("forget \(other) --group-by scope --repo repo").code == 0)
    #expect(try cli.run("forget \(ids[0]) \(ids[1]) --allow-last --repo repo").code == 0)
    #expect(try present().isEmpty)
  }

  @Test func damagedSnapshotIsRemovedByFullIdOnly() throws {
    let ids = try january(3)
    try cli.directory.write("damaged", at: ByteString("repo/snapshots/" + file(ids[1])))
    let rules = try cli.run("forget --keep-last 1 --repo repo")
    #expect(rules.code == 13 && rules.errors.contains("snapshots/" + file(ids[1])))
    #expect(try present() == [ids[1], ids[2]])
    for line in ["forget \(ids[1])", "forget \(short(ids[1])) --force"] {
      let outcome = try cli.run(line + " --repo repo")
      #expect(outcome.code == 13, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("hint: give its full id and '--force'"), "\(outcome.errors)")
    }
    let reported = try cli.succeed("forget \(ids[1]) --force --repo repo")
    #expect(reported == "damaged snapshot: remove \(ids[1])\n\nremoved 1 of 2 snapshots\n")
    #expect(try present() == [ids[2]])
  }

  /// Another program may have made it today, and needs it.
  @Test func snapshotOfALaterVersionIsNotRemovedAsDamaged() throws {
    let ids = try january(2) + [make("2026-01-03T12:00:00Z", version: 2)]
    for force in ["", " --force"] {
      let outcome = try cli.run("forget \(ids[2])\(force) --repo repo")
      #expect(outcome.code == 1, "\(outcome.errors)")
      #expect(outcome.errors.contains("version 2 is not supported"), "\(outcome.errors)")
      #expect(outcome.errors.contains("hint: use a newer sandboxctl"), "\(outcome.errors)")
      #expect(!outcome.errors.contains("--force"))
    }
    #expect(try present() == Set(ids))
  }

  /// Heads come from a cache, which does not notice a change of content at the same size and time.
  @Test func damageOfAKeptSnapshotIsFoundBeforeOthersAreRemoved() throws {
    let ids = try january(3)
    _ = try cli.succeed("snapshots --repo repo")
    let path = cli.path(ofSnapshot: ids[2])
    let damage = try Program.run(
      "sh",
      ["-c", "touch -r $0 ref && printf X | dd conv=notrunc of=$0 && touch -r ref $0", path],
      in: cli.directory.url)
    #expect(damage.code == 0)
    for dryRun in [" --dry-run", ""] {
      let outcome = try cli.run("forget --keep-last 1 --repo repo" + dryRun)
      #expect(outcome.code == 13 && outcome.errors.contains("snapshots/" + file(ids[2])))
      #expect(outcome.output.contains("keep    \(short(ids[1]))"), "\(outcome.output)")
    }
    #expect(try present() == [ids[1], ids[2]])
    // Nor does the damaged one count as the one that remains in the group.
    let named = try cli.run("forget \(ids[1]) --repo repo")
    #expect(named.code == 1 && named.errors.contains("no other snapshot of the same group"))
    #expect(named.errors.contains("snapshots/" + file(ids[2])))
    #expect(try present() == [ids[1], ids[2]])
  }

  // MARK: - Pins

  @Test func pinnedSnapshotStaysUntilItIsUnpinned() throws {
    let ids = try january(4)
    #expect(
      try cli.succeed("snapshots pin \(short(ids[0])) latest --repo repo")
        == "pinned \(short(ids[0]))\npinned \(short(ids[3]))\n")
    #expect(
      try cli.succeed("snapshots pin latest --repo repo")
        == "\(short(ids[3])) is already pinned\n")
    #expect(try names("pins") == [ids[0], ids[3]])
    let listed = try cli.jsonLines("snapshots --json --repo repo")
    #expect(listed.map { $0["pinned"] as? Bool } == [true, false, false, true])
    let table = try cli.succeed("snapshots --repo repo").split(separator: "\n")
    #expect(table[0].contains("  pinned  ") && table[1].contains("  yes  "), "\(table)")
    #expect(!table[2].contains("yes"))

    let outcome = try cli.run("forget \(ids[0]) \(ids[1]) --repo repo")
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("cannot forget the snapshot \(short(ids[0])): it is pinned"))
    let remedy = "hint: 'sandboxctl snapshots unpin \(short(ids[0])) --repo repo'"
    #expect(outcome.errors.contains(remedy), "\(outcome.errors)")
    #expect(try present() == Set(ids))
    let reported = try cli.succeed("forget --keep-last 1 --repo repo")
    #expect(reported.contains("  pinned\n") && reported.contains("  last, pinned\n"), "\(reported)")
    #expect(try present() == [ids[0], ids[3]])

    let unpinned = try cli.jsonLines("snapshots unpin \(ids[0]) \(ids[0]) --json --repo repo")
    #expect(unpinned.count == 2 && unpinned[0]["changed"] as? Bool == true)
    #expect(
      try cli.succeed("snapshots unpin \(ids[0]) --repo repo")
        == "\(short(ids[0])) is not pinned\n")
    _ = try cli.succeed("forget --keep-last 1 --repo repo --quiet")
    #expect(try present() == [ids[3]] && names("pins") == [ids[3]])
  }

  // MARK: - Stores

  @Test func readOnlyStoreIsReported() throws {
    let ids = try january(3)
    _ = try cli.succeed("snapshots --repo repo")
    guard try Mount.isPermitted() else { return }
    let path = cli.directory.path("repo")
    let mount = try Mount(binding: path, on: path)
    _ = try Program.run("mount", ["-o", "remount,ro,bind", directory])
    defer { withExtendedLifetime(mount) {} }
    let dry = try cli.succeed("forget --keep-last 1 --repo repo --dry-run")
    #expect(dry.hasSuffix("would remove 2 of 3 snapshots\n"))
    // If there is nothing to remove, nothing is written.
    #expect(try cli.run("forget --keep-last 9 --repo repo").code == 0)
    for line in ["forget --keep-last 1", "forget latest", "snapshots pin latest"] {
      let outcome = try cli.run(line + " --json --repo repo")
      #expect(outcome.code == 1)
      let failure = try CommandLine.object(
        try #require(outcome.errors.split(separator: "\n").last))
      #expect(failure["code"] as? String == "read_only", "\(failure)")
      #expect((failure["error"] as? String)?.contains("cannot write to the repository") == true)
    }
    #expect(try present() == Set(ids))
  }

  @Test func missingRepositoryIsReported() throws {
    for line in ["forget --keep-last 1", "snapshots pin latest", "snapshots unpin latest"] {
      #expect(try cli.run(line + " --repo none").code == 10)
    }
  }

  @Test func dataOfRemainingSnapshotsIsRestored() throws {
    let backup = "backup --layout folder --root tree --repo repo --quiet"
    for number in 1...4 {
      try cli.directory.write("text \(number)", at: "tree/file")
      _ = try cli.succeed(backup)
    }
    _ = try cli.succeed("forget --keep-last 2 --repo repo --quiet")
    #expect(try cli.succeed("dump latest:folders/tree/file --repo repo") == "text 4")
    #expect(try cli.succeed("dump latest~1:folders/tree/file --repo repo") == "text 3")
    #expect(try cli.run("dump latest~2:folders/tree/file --repo repo").code == 1)
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
    // The next backup continues from the remaining ones.
    _ = try cli.succeed(backup)
    #expect(try cli.snapshots().count == 3)
  }

  @Test func optionsCanBeConfigured() throws {
    let ids = try january(5)
    try cli.directory.write(
      """
      repo: \(directory)
      forget: {keep-daily: 2, keep-tag: [a, "b,c"], keep-within: 1d, group-by: device}
      """, at: "home/.config/sandboxctl/config.yaml")
    _ = try cli.succeed("forget")
    #expect(try present() == [ids[3], ids[4]])
    #expect(try cli.run("forget \(ids[3])").code == 0)
  }
}
