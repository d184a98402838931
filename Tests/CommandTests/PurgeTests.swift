import Foundation
import SystemIO
import TestSupport
import Testing

/// `purge` with text and JSON output.
struct PurgeTests {
  private func device() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    return cli
  }

  @Test func dryRunListsTheCandidatesAndChangesNothing() throws {
    let cli = try device()
    let before = try TreeRecord.all(in: cli.directory, "device")
    let lines = try cli.jsonLines("purge --root device --level critical --dry-run --json")
    let candidates = lines.filter { $0["event"] as? String == "candidate" }
    try #require(candidates.count > 10)
    #expect(Set(candidates.compactMap { $0["class"] as? String }) == ["cache", "temporary"])
    #expect(candidates.compactMap { $0["number"] as? Int } == Array(1...candidates.count))
    let plan = try #require(lines.last)
    let volume = try #require((plan["volumes"] as? [[String: Any]])?.first)
    #expect(volume["units"] as? Int == candidates.count)
    let again = try cli.jsonLines("purge --root device --level critical --dry-run --json")
    #expect(
      again.compactMap { $0["path"] as? String } == lines.compactMap { $0["path"] as? String })
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
    let text = try cli.succeed("purge --root device --level critical --dry-run")
    #expect(text.contains("order 0"))
    #expect(text.contains("would free"))
    #expect(text.contains("apps/org.example.reader/data/Library/Caches/"))
  }

  @Test func cachesAreDeletedAndDocumentsStay() throws {
    let cli = try device()
    let before = try TreeRecord.all(in: cli.directory, "device")
    let report = try cli.json("purge --root device --level critical --yes --json")
    let freed = try #require(report["freed"] as? Int)
    #expect(freed > 100_000)
    let after = try TreeRecord.all(in: cli.directory, "device")
    let isCache = { (path: ByteString) in
      ["/Library/Caches/", "/tmp/"].contains { path.description.contains($0) }
    }
    let gone = before.filter { after[$0.key] == nil }
    #expect(!gone.isEmpty && gone.keys.allSatisfy(isCache), "\(gone.keys.sorted())")
    for (path, record) in after where record.kind != .directory {
      var (now, then) = (record, try #require(before[path]))
      // Another hard link of the file may have been deleted with a cache.
      (now.firstName, then.firstName) = (nil, nil)
      #expect(now == then, "\(path)")
    }
    let directories = after.filter { $0.value.kind == .directory }.keys.map(\.description)
    #expect(directories.count { $0.hasSuffix("/Library/Caches") } >= 3)
    #expect(try cli.succeed("purge --root device --query").contains("critical"))
    let second = try cli.json("purge --root device --level critical --yes --json")
    #expect(second["freed"] as? Int == 0)
    // Nothing is left to ask about.
    let third = try cli.run("purge --root device --level critical --free 1G --json")
    #expect(third.code == 5)
    #expect(third.output.hasPrefix(#"{"event":"report","#) && third.output.last == "\n")
    #expect(third.output.count { $0 == "\n" } == 1)
  }

  /// Entries that the command line excludes from backups, or includes in them, are not purged.
  @Test(arguments: ["--exclude", "--include"]) func entriesThatAPatternMatchesStay(
    option: String
  ) throws {
    let cli = try device()
    let purge = "purge --root device --level critical"
    func candidates(_ options: String) throws -> [String] {
      try cli.jsonLines("\(purge) --dry-run --json \(options)").compactMap { line in
        line["event"] as? String == "candidate" ? line["path"] as? String : nil
      }
    }
    let all = try candidates("")
    let others = all.filter { !$0.contains("/Library/Caches/") }
    #expect(!others.isEmpty && others.count < all.count, "\(all)")
    #expect(Set(try candidates("\(option) Library/Caches/**")) == Set(others))
    let before = try TreeRecord.all(in: cli.directory, "device")
    _ = try cli.succeed("\(purge) --yes \(option) Library/Caches/** \(option) tmp/**")
    let after = try TreeRecord.all(in: cli.directory, "device")
    let gone = Set(before.keys).subtracting(after.keys)
    #expect(
      gone.allSatisfy {
        !$0.description.contains("/Library/Caches/") && !$0.description.contains("/tmp/")
      }, "\(gone)")
  }

  @Test func withoutATerminalConfirmationIsRequired() throws {
    let cli = try device()
    let before = try TreeRecord.all(in: cli.directory, "device")
    let outcome = try cli.run("purge --root device --level critical")
    #expect(outcome.code == 2)
    #expect(outcome.errors.contains("'--yes'"))
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
  }

  /// Without a goal and without pressure nothing would be deleted: the output of each level is
  /// shown without a confirmation.
  @Test func withoutPressureNoConfirmationIsNeeded() throws {
    let cli = try device()
    let before = try TreeRecord.all(in: cli.directory, "device")
    let outcome = try cli.run("purge --root device")
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    // The first line contains the free space, which changes meanwhile.
    let query = try cli.succeed("purge --root device --query").split(separator: "\n").dropFirst()
    #expect(outcome.output.split(separator: "\n").dropFirst() == query)
    #expect(query.contains { $0.contains("critical") })
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
  }

  @Test func purgeAsksOnATerminal() throws {
    let cli = try device()
    let before = try TreeRecord.all(in: cli.directory, "device")
    let words = "\(CommandLine.program) purge --root device --level critical"
    for (answer, isGone) in [("n\n", false), ("\n", false), ("y\n", true)] {
      let outcome = try Program.run(
        "script", ["-qec", words, "/dev/null"], environment: cli.environment,
        cleanEnvironment: true, in: cli.directory.url, input: Array(answer.utf8))
      #expect(outcome.code == 0, "\(outcome.output)")
      #expect(outcome.output.contains("Delete this? [y/N]"))
      #expect((try TreeRecord.all(in: cli.directory, "device") == before) == !isGone)
    }
  }

  @Test func missedGoalIsReported() throws {
    let cli = try device()
    let outcome = try cli.run("purge --root device --free 1TiB --yes")
    #expect(outcome.code == 5)
    #expect(outcome.errors.contains("short of the goal"))
    #expect(outcome.errors.contains("'--level critical'"), "\(outcome.errors)")
    let words = try cli.run("purge --root device --free 1M --until-free 5 --yes")
    #expect(words.code == 2)
    #expect(try cli.run("purge --root device --level high --yes").code == 2)
    #expect(try cli.run("purge --root device --until-free 100 --yes").code == 2)
  }

  @Test func singleAppIsPurged() throws {
    let cli = try device()
    let report = try cli.json("purge --root device --level critical --app reader --yes --json")
    let parties = report["parties"] as? [[String: Any]] ?? []
    #expect(parties.compactMap { $0["name"] as? String } == ["org.example.reader"])
  }

  @Test func explainGivesThePurgeDecision() throws {
    let cli = try device()
    func explain(_ path: String) throws -> String {
      try cli.succeed("explain --root device --purge \(path)")
    }
    let goes = try explain("reader/tmp/CFNetworkDownload_d4E5f6.tmp")
    let first = #/purge: candidate \d+ of \d+ of org\.example\.reader, .*, order 0, /#
    #expect(goes.contains(first), "\(goes)")
    #expect(goes.contains("deleted at critical") && goes.contains("decided by "), "\(goes)")
    let directory = try explain("notebook/Library/Caches")
    #expect(
      directory.contains(
        "not a candidate: a directory is removed only after a purge has emptied it"))
    let kept = try explain("notebook/Documents/Notes/Groceries.md")
    #expect(kept.contains("not a candidate: the policy never purges it"), "\(kept)")
  }

  /// A candidate that only its file flags protect is reported, and is not a failure.
  @Test func immutableFilesAreNamed() throws {
    let cli = try device()
    let line = "purge --root device --level critical"
    let lines = try cli.jsonLines("\(line) --dry-run --json")
    let file = try #require(
      lines.first { $0["event"] as? String == "candidate" && $0["kind"] as? String == "file" })
    let (path, bytes) = (try #require(file["path"] as? String), file["bytes"] as? Int ?? 0)
    let found = try cli.json("explain --root device --purge --json \(path)")
    #expect((found["purge"] as? [String: Any])?["candidate"] as? Bool == true)
    let inner = path.split(separator: "/").dropFirst(3).joined(separator: "/")
    let name = try #require(
      TreeRecord.all(in: cli.directory, "device").keys.first { "\($0)".hasSuffix(inner) })
    let real = cli.directory.path("device").appending(name)
    let cache = try Directory.open(path: real.parent).file(real.lastComponent ?? "")
    do { try cache.setFlags(FileFlags.immutable) } catch {
      print("skipped: no file can be made immutable: \(error)")
      return
    }
    defer { withExtendedLifetime(cli) { try? cache.setFlags(0) } }
    let plan = try #require(try cli.jsonLines("\(line) --dry-run --json").last)
    let immutable = plan["immutable"] as? [[String: Any]] ?? []
    #expect(immutable.map { $0["path"] as? String } == [path])
    #expect(immutable.map { $0["real_path"] as? String } == ["\(real)"])
    func gives(_ plan: [String: Any]?) -> Int? {
      (plan?["volumes"] as? [[String: Any]])?.first?["gives"] as? Int
    }
    #expect(gives(plan) == gives(lines.last).map { $0 - bytes })
    let words = "note: cannot be deleted: \(path) (\(real)): it is immutable or append-only"
    for option in ["--query", "--dry-run", "--yes"] {
      let line = option == "--query" ? "purge --root device" : line
      let outcome = try cli.run("\(line) \(option)")
      #expect(outcome.code == 0 && outcome.errors.contains(words), "\(outcome.errors)")
    }
    let explained = try cli.succeed("explain --root device --purge \(path)")
    #expect(explained.contains("not a candidate: '\(path)' is immutable"), "\(explained)")
  }

  /// A group's caches belong to all its members: they stay while any of them is running.
  @Test func cachesOfAGroupStayWhileAMemberRuns() throws {
    let cli = try device()
    let words = "purge --root device --level critical --dry-run --json"
    func parties(_ lines: [[String: Any]]) -> Set<String> {
      Set(
        lines.compactMap { $0["path"] as? String }.compactMap { path in
          ["org.example.reader", "group.org.example.library", "org.example.notebook"]
            .first(where: path.contains)
        })
    }
    let all = try cli.jsonLines(words)
    #expect(parties(all).count == 3, "\(parties(all))")
    let cached = try #require(
      all.compactMap { $0["path"] as? String }.first { $0.contains("org.example.reader/data") })
    let inner = cached.split(separator: "/").dropFirst(3).joined(separator: "/")
    let found = try TreeRecord.all(in: cli.directory, "device").keys.first {
      "\($0)".hasSuffix(inner)
    }
    let file = cli.directory.path("device").appending(try #require(found))
    let reader = try Program.start("sleep", ["3600"], standardInput: file)
    defer { reader.end() }
    let now = try cli.jsonLines(words)
    #expect(parties(now) == ["org.example.notebook"])
    let running = try #require(now.last?["running"] as? [[String: Any]])
    #expect(running.count == 2, "\(running)")
  }

  /// The report names the full volume by its mount point, not by a container's path.
  @Test func volumeIsNamedByItsMountPoint() throws {
    let cli = try device()
    let location = try Program.run("stat", ["-c", "%m", "device"], in: cli.directory.url).output
      .dropLast()
    for line in ["--query", "--level critical --dry-run"] {
      let text = try cli.succeed("purge --root device \(line)")
      #expect(text.split(separator: "\n").contains { $0.hasPrefix("\(location): ") }, "\(text)")
    }
    let query = try cli.json("purge --root device --query --json")
    let volumes = query["volumes"] as? [[String: Any]] ?? []
    #expect(volumes.map { $0["mount_point"] as? String } == [String(location)])
    let lines = try cli.jsonLines("purge --root device --level critical --dry-run --json")
    let candidates = lines.filter { $0["event"] as? String == "candidate" }
    #expect(Set(candidates.map { $0["volume"] as? String }) == [String(location)])
    let report = try cli.json("purge --root device --level critical --yes --json")
    let purged = report["volumes"] as? [[String: Any]] ?? []
    #expect(purged.map { $0["mount_point"] as? String } == [String(location)])
  }

  @Test func bothVolumesAreNamedByTheirMountPoints() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try device()
    let mount = try Mount(on: cli.directory.directory, at: cli.directory.path, "volume")
    defer { withExtendedLifetime(mount) {} }
    _ = try Program.run("cp", ["-a", "device", "volume/device"], in: cli.directory.url)
    let text = try cli.succeed("purge --root volume/device --query")
    #expect(text.hasPrefix("\(cli.directory.string)/volume: "), "\(text)")
  }
}
