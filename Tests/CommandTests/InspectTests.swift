import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands that inspect a repository: diff, find, versions, dump, stats, snapshots, ls.
struct InspectTests {
  /// Makes a repository with one snapshot for each of three days of the sample device.
  private static func sample() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    for day in 0...2 {
      if day > 0 { _ = try cli.succeed("sample device --day \(day)") }
      _ = try cli.succeed("backup --root device --repo repo --quiet --tag day-\(day)")
    }
    return cli
  }

  private static let notes = "apps/org.example.notebook/data/Documents/Notes"

  @Test func textOutputIsAsRecorded() throws {
    let cli = try Self.sample()
    var transcript = Transcript(cli)
    try transcript.run("diff latest~1 latest --repo repo", exits: 0)
    try transcript.run("diff latest~2 latest --metadata --repo repo \(Self.notes)", exits: 0)
    try transcript.run("diff latest latest --repo repo", exits: 0)
    try transcript.run("find *.sqlite --repo repo", exits: 0)
    try transcript.run("find apps/*/data/Documents/*/D* --snapshot latest --repo repo", exits: 0)
    try transcript.run("find nothing --repo repo", exits: 0)
    try transcript.run("stats latest --repo repo", exits: 0)
    try transcript.expectSnapshot("inspect")
  }

  @Test func damagedDirectoriesAreNotCompared() throws {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("init repo --plain")
    var older: [String] = []
    for text in ["one", "two"] {
      older = try cli.packs()
      try cli.directory.write(text, at: "tree/file")
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
    for pack in Set(try cli.packs()).subtracting(older) {
      try FileManager.default.removeItem(atPath: pack)
    }
    let outcome = try cli.run("diff latest~1 latest --repo repo")
    #expect(outcome.code == 13 && outcome.output == "1 damaged directory not compared\n")
  }

  /// Tags are separated by commas wherever they are named.
  @Test func tagsAreSeparatedByCommas() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("text", at: "tree/file")
    _ = try cli.succeed("init repo --plain")
    let backup = "backup --layout folder --root tree --repo repo --quiet --tag "
    for tags in ["a,b --tag c", "d"] { _ = try cli.succeed(backup + tags) }
    let snapshots = try cli.jsonLines("snapshots --json --repo repo")
    #expect(snapshots.map { $0["tags"] as? [String] } == [["a", "b", "c"], ["d"]])
    for (tags, count) in [("a,c", 1), ("a,d", 0), ("a --tag d", 2)] {
      #expect(try cli.jsonLines("snapshots --json --repo repo --tag \(tags)").count == count)
    }
    let plan = try cli.succeed("forget --keep-tag a --keep-tag d --repo repo --dry-run")
    #expect(plan.hasSuffix("would remove 0 of 2 snapshots\n"))
    for tags in ["", "a,", ","] {
      let outcome = try cli.run(backup.split(separator: " ").map(String.init) + [tags])
      #expect(outcome.code == 2, "\(tags): \(outcome.errors)")
    }
    let none = try cli.run("forget --keep-last 1 --tag x --repo repo --dry-run")
    #expect(none.code == 0 && none.errors.contains("note: no snapshot matches"), "\(none.errors)")
  }

  @Test func invalidQueriesAreErrors() throws {
    let cli = try Self.sample()
    var transcript = Transcript(cli)
    try transcript.run("diff latest~1 latest no/such --repo repo", exits: 1)
    try transcript.run("diff latest~1 latest:apps --repo repo", exits: 2)
    try transcript.run("diff latest --repo repo", exits: 2)
    try transcript.run("find [a --repo repo", exits: 2)
    try transcript.run("find /etc --repo repo", exits: 2)
    try transcript.run("find * --snapshot ffffffff --repo repo", exits: 1)
    try transcript.run("versions apps/no/such --repo repo", exits: 1)
    try transcript.run("versions / --repo repo", exits: 2)
    try transcript.run("dump latest:no/such --repo repo", exits: 1)
    try transcript.run(
      "dump latest:apps/org.example.notebook/data/Documents/Latest.md --repo repo", exits: 1)
    try transcript.run("snapshots --last 0 --repo repo", exits: 2)
    try transcript.run("snapshots show latest~9 --repo repo", exits: 1)
    try transcript.run("stats latest~9 --repo repo", exits: 1)
    try transcript.run("check --read-data-subset 0% --repo repo", exits: 2)
    try transcript.run("check --read-data-subset 3/2 --repo repo", exits: 2)
    try transcript.run("check --read-data-subset 1/2 --read-data --repo repo", exits: 2)
    try transcript.run("check --repo nowhere", exits: 10)
    try transcript.expectSnapshot("errors-inspect")
  }

  /// Each kind of difference between two directories, and no other.
  @Test func differencesAreClassified() throws {
    let cli = try CommandLine(inMemory: true)
    for name: ByteString in ["same", "bytes", "time", "mode", "type", "gone", "old/deep/file"] {
      try cli.directory.write("one", at: ByteString("tree").appending(name))
    }
    let script = """
      cd tree; touch -d @1700000000 .  * ; ln -s one link; touch -h -d @1700000000 link
      """
    _ = try Program.run("/bin/sh", ["-ec", script], in: cli.directory.url)
    _ = try cli.succeed("init repo --plain")
    let backup = "backup --layout folder --root tree --repo repo --quiet"
    _ = try cli.succeed(backup)
    let change = """
      cd tree; printf two > bytes; touch -d @1700000000 bytes; touch -d @1700000001 time
      chmod 600 mode; rm type gone; mkdir type; rm -r old; mkdir -p new/deep; echo x > new/deep/file
      ln -sf two link; touch -h -d @1700000000 link; setfattr -n user.mark -v x same
      """
    let outcome = try Program.run("/bin/sh", ["-ec", change], in: cli.directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    _ = try cli.succeed(backup)
    let lines = try cli.jsonLines("diff latest~1 latest folders/tree --metadata --json --repo repo")
    var found: [ByteString: String] = [:]
    for line in lines.dropLast() {
      let differs = (line["differs"] as? [String])?.joined(separator: "+")
      let path = try #require(line.path())
      found[path] = [line["change"] as? String, differs].compactMap { $0 }.joined(separator: " ")
      #expect((line["before"] == nil) == (line["change"] as? String == "added"))
      #expect((line["after"] == nil) == (line["change"] as? String == "removed"))
    }
    let top = ByteString("folders/tree")
    #expect(
      found == [
        top: "metadata modified", top.appending("bytes"): "content content",
        top.appending("time"): "metadata modified", top.appending("mode"): "metadata mode",
        top.appending("type"): "type", top.appending("gone"): "removed",
        top.appending("old"): "removed", top.appending("old/deep"): "removed",
        top.appending("old/deep/file"): "removed", top.appending("new"): "added",
        top.appending("new/deep"): "added", top.appending("new/deep/file"): "added",
        top.appending("link"): "content content", top.appending("same"): "metadata attributes",
      ])
    let summary = try #require(lines.last?["summary"] as? [String: Any])
    #expect(summary["added"] as? Int == 3 && summary["removed"] as? Int == 4)
    #expect(summary["added_bytes"] as? Int == 2 && summary["removed_bytes"] as? Int == 6)
    // Paths in only one snapshot, or of types other than directories.
    #expect(
      try cli.jsonLines("diff latest~1 latest folders/tree/new --json --repo repo").count == 4)
    #expect(
      try cli.jsonLines("diff latest latest~1 folders/tree/new --json --repo repo").count == 4)
    #expect(
      try cli.succeed("diff latest~1 latest folders/tree/bytes --repo repo")
        == "M  folders/tree/bytes\n1 modified\n")
  }

  /// Directories above containers do not exist on devices and have no time; times in 1970 are kept.
  @Test func timesIn1970AreKept() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("old", at: "tree/folder/old")
    let script = "cd tree; touch -d @0 folder/old folder ."
    let outcome = try Program.run("/bin/sh", ["-ec", script], in: cli.directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for (line, time) in [
      ("ls latest --recursive --repo repo", "1970-01-01 00:00"),
      ("ls latest --recursive --long --repo repo", "1970-01-01 00:00:00"),
      ("find ** --repo repo", "1970-01-01 00:00"),
    ] {
      let lines = try cli.succeed(line).split(separator: "\n")
      for path in ["folders/tree/", "folders/tree/folder/", "folders/tree/folder/old"] {
        let shown = lines.filter { "\($0) ".contains("  \(path) ") }
        #expect(shown.count == 1, "\(lines)")
        #expect(shown.first?.contains("\(time)  \(path)") == true, "\(lines)")
      }
      let above = lines.filter { "\($0) ".contains("  folders/ ") }
      #expect(above.count == 1 && !above.contains { $0.contains("1970") }, "\(lines)")
    }
  }

  @Test func versionsAreDistinct() throws {
    let cli = try Self.sample()
    let ids = try cli.snapshots()
    let changing = try cli.jsonLines("versions \(Self.notes)/Groceries.md --json --repo repo")
    #expect(changing.count == 3)
    #expect(Set(changing.compactMap { $0["content"] as? String }).count == 3)
    let named = try cli.run("versions latest:\(Self.notes)/Groceries.md --repo repo")
    #expect(named.code == 1)
    #expect(
      named.errors.contains("give the path without a snapshot, '\(Self.notes)/Groceries.md'"),
      "\(named.errors)")
    let still = try cli.jsonLines("versions \(Self.notes)/Recipes.md --json --repo repo")
    #expect(still.count == 1)
    #expect(still.first?["snapshots"] as? [String] == ids)
    let times = try cli.jsonLines("snapshots --json --repo repo").compactMap {
      $0["time"] as? String
    }
    #expect(still.first?["first_time"] as? String == times.first)
    #expect(still.first?["last_time"] as? String == times.last)
    let found = try cli.jsonLines("find Day*2.md --json --repo repo")
    #expect(found.count == 1)
    #expect(found.first?["snapshots"] as? [String] == [ids[2]])
  }

  @Test func foundPathsEqualListedPaths() throws {
    let cli = try Self.sample()
    for (pattern, suffix) in [("*.md", ".md"), ("**/*.md", ".md"), ("*.SQLITE -i", ".sqlite")] {
      let found = try cli.jsonLines("find \(pattern) --snapshot latest --json --repo repo")
      let listed = try cli.jsonLines("ls latest --recursive --json --repo repo")
        .compactMap { $0.path() }.filter {
          Array($0.bytes).suffix(suffix.utf8.count) == Array(suffix.utf8)[...]
        }
      #expect(found.compactMap { $0.path() } == listed, "\(pattern)")
      #expect(!listed.isEmpty)
    }
    let (last, id) = ("--snapshot latest", try #require(cli.snapshots().last))
    let twice = try cli.jsonLines("find *.md \(last) --snapshot \(id) --json --repo repo")
    #expect(!twice.isEmpty && twice.allSatisfy { $0["snapshots"] as? [String] == [id] })
    let all = try cli.jsonLines("find ** --snapshot latest --json --repo repo")
    #expect(all.count == (try cli.jsonLines("ls latest --recursive --json --repo repo")).count)
  }

  @Test func longListingsHaveOwnersBytesAndSeconds() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write([UInt8](repeating: 1, count: 5000), at: "tree/file")
    _ = try Program.run("touch", ["-d", "@1700000001", "tree/file"], in: cli.directory.url)
    _ = try Program.run("chmod", ["4701", "tree/file"], in: cli.directory.url)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let user = Host.userName(Host.userID) ?? "\(Host.userID)"
    let group = Host.groupName(Host.groupID) ?? "\(Host.groupID)"
    let line = try cli.succeed("ls latest:folders/tree --long --repo repo")
    let words = line.split(separator: " ").map(String.init)
    #expect(
      words == ["-rws-----x", user, group, "5000", "2023-11-14", "22:13:21", "folders/tree/file\n"])
    #expect(
      try cli.succeed("ls latest:folders/tree --repo repo")
        == "-rws-----x    4.9 KiB  2023-11-14 22:13  folders/tree/file\n")
  }

  @Test func snapshotsAreFiltered() throws {
    let cli = try Self.sample()
    let ids = try cli.snapshots()
    let chosen = { (options: String) throws in
      try cli.jsonLines("snapshots \(options) --json --repo repo").compactMap {
        $0["id"] as? String
      }
    }
    #expect(try chosen("--last 2") == Array(ids.suffix(2)))
    #expect(try chosen("--tag day-1") == [ids[1]])
    #expect(try chosen("--tag day-1 --tag day-0") == [ids[0], ids[1]])
    #expect(try chosen("--app NOTEBOOK --last 1") == [ids[2]])
    #expect(try chosen("--app org.example.notebook") == ids)
    #expect(try chosen("--app note").isEmpty)
    #expect(try chosen("--host \(Host.name)") == ids)
    #expect(try chosen("--host elsewhere").isEmpty)
    #expect(try chosen("list") == ids)
    let shown = try cli.json("snapshots show latest --json --repo repo")
    #expect(shown["id"] as? String == ids[2])
    #expect(shown["format"] as? String == "sandboxctl-snapshot")
    #expect((shown["left_out"] as? [Any])?.isEmpty == false)
    let text = try cli.succeed("snapshots show latest --repo repo")
    for word in ["org.example.notebook", "user-data", "excluded", "caches", "day-2", ids[1]] {
      #expect(text.contains(word), "\(word)")
    }
  }

  /// Counts of the repository agree with those of its snapshots, and counts of a snapshot with its
  /// totals.
  @Test func allOutputsHaveTheSameCounts() throws {
    let cli = try Self.sample()
    let all = try cli.json("stats --json --repo repo")
    let snapshots = try cli.jsonLines("snapshots --json --repo repo")
    #expect(all["snapshots"] as? Int == 3)
    #expect(all["bytes"] as? Int == snapshots.reduce(0) { $0 + ($1["bytes"] as? Int ?? 0) })
    let packs = try cli.packs()
    #expect(all["packs"] as? Int == packs.count)
    let stored = try packs.reduce(0) { sum, pack in
      sum + (try FileManager.default.attributesOfItem(atPath: pack)[.size] as? Int ?? 0)
    }
    #expect(all["pack_bytes"] as? Int == stored)
    let shown = try cli.json("snapshots show latest --json --repo repo")
    let totals = try #require(shown["totals"] as? [String: Any])
    let classes = try #require(totals["classes"] as? [[String: Any]])
    let rows = try #require(
      try cli.json("stats latest --json --repo repo")["rows"] as? [[String: Any]])
    for total in classes {
      let ofClass = rows.filter { $0["class"] as? String == total["name"] as? String }
      let files = ofClass.reduce(0) { $0 + ($1["files"] as? Int ?? 0) }
      #expect(files == total["files"] as? Int, "\(total)")
    }
    #expect(rows.reduce(0) { $0 + ($1["files"] as? Int ?? 0) } == totals["files"] as? Int)
  }
}
