import Foundation
import SystemIO
import TestSupport
import Testing

/// `import restic`, `import borg` and `import kopia` with a program that imitates these.
struct ImportPeerTests {
  /// Each snapshot becomes a snapshot with its metadata and entries, the oldest first.
  @Test(arguments: [
    ("restic", "docs", "2024-01-01T02:04:05Z", "/docs"),
    ("borg", "docs", "2024-01-01T03:04:05Z", ""),
    ("kopia", "srv/files/docs", "2024-01-01T03:04:05.500000000Z", "/srv/files"),
  ])
  func eachSnapshotIsImported(kind: String, path: String, time: String, source: String) throws {
    let fixture = try PeerFixture()
    let cli = fixture.cli
    let lines = try fixture.lines(kind)
    #expect(lines.outcomes == ["imported", "imported", "imported"])
    #expect(lines.summary["imported"] as? Int == 3)
    #expect(lines[0]["time"] as? String == time && lines[0]["host"] as? String == "ada")
    #expect(lines[0]["paths"] as? [String] == (source.isEmpty ? [] : [source]))
    // Unchanged data is stored once.
    #expect(lines[0]["new_bytes"] as? Int ?? 0 > 200_000)
    #expect(lines[1]["new_bytes"] as? Int ?? 9999 < 5000, "\(lines[1])")
    let ids = lines.compactMap { $0["id"] as? String }
    #expect(try cli.snapshots() == ids)
    for (number, id) in ids.enumerated() {
      let text = try cli.succeed("dump \(id):folders/ada/\(path)/note --repo repo")
      #expect(text == "state \(number + 1)")
    }
    _ = try cli.succeed("restore \(ids[0]):folders/ada/\(path) --to back --repo repo --quiet")
    var wanted = try TreeRecord.all(in: cli.directory, "states/1/docs")
    var found = try TreeRecord.all(in: cli.directory, "back")
    if kind == "kopia" {
      for path in wanted.keys { wanted[path]?.modified.nanoseconds = 0 }
      for path in found.keys { found[path]?.modified.nanoseconds = 0 }
    }
    for path: ByteString in ["note", "link", "in"] {
      #expect(wanted[path] == found[path], "\(path)")
    }
    #expect(wanted["in/large"]?.content == found["in/large"]?.content)
    let shown = try cli.json("snapshots show \(ids[0]) --json --repo repo")
    #expect(shown["host"] as? String == "ada" && shown["user"] as? String == "grace")
    #expect(shown["time"] as? String == time && shown["reason"] as? String == "import")
    let tags = shown["tags"] as? [String] ?? []
    let reference = "\(kind):" + (lines[0]["source_id"] as? String ?? "none")
    #expect(tags.last == reference, "\(tags)")
    let own = ["restic": ["a"], "borg": ["docs-2024-01-01T03:04:05"], "kopia": ["env:prod"]]
    #expect(Array(tags.dropLast()) == own[kind], "a tag that looks like a reference is omitted")
  }

  /// The paths and the metadata of kopia's root, which its archives do not have.
  @Test func theRootOfKopiaHasItsMetadata() throws {
    let fixture = try PeerFixture(states: 1)
    _ = try fixture.lines("kopia")
    let root = try fixture.cli.jsonLines("ls latest:folders/ada/srv --json --repo repo")
    let files = root.first { ($0["path"] as? String)?.hasSuffix("srv/files") == true }
    #expect(files?["mode"] as? Int == 0o751, "\(root)")
    #expect(files?["modified"] as? String == "2023-01-02T03:04:05.123456789Z")
  }

  /// The snapshots of one source form a sequence; others are separate sources.
  @Test(arguments: ["restic", "borg", "kopia"])
  func aSecondRunImportsOnlyWhatIsNew(kind: String) throws {
    let fixture = try PeerFixture(states: 2)
    _ = try fixture.lines(kind)
    let again = try fixture.lines(kind)
    #expect(again.outcomes == ["present", "present"])
    #expect(try fixture.cli.snapshots().count == 2)
    try fixture.cli.directory.write("more", at: "states/3/docs/note")
    let more = try fixture.lines(kind)
    #expect(more.outcomes == ["present", "present", "imported"])
    let sources = try fixture.cli.snapshots().map {
      try fixture.cli.json("snapshots show \($0) --json --repo repo")["source"] as? String
    }
    #expect(Set(sources).count == 1 && sources.count == 3)
  }

  /// borg makes an archive even if there is nothing to back up. It is a state like the others.
  @Test(arguments: ["restic", "borg", "kopia"])
  func aSnapshotWithoutEntriesIsImported(kind: String) throws {
    let fixture = try PeerFixture()
    let cli = fixture.cli
    try FileManager.default.removeItem(atPath: cli.directory.string + "/states/2/docs")
    let lines = try fixture.lines(kind)
    #expect(lines.outcomes == ["imported", "imported", "imported"])
    let listed = try cli.snapshots().map {
      try cli.succeed("ls \($0):folders/ada --recursive --repo repo").contains("note")
    }
    #expect(listed == [true, false, true])
    #expect(try fixture.lines(kind).outcomes == ["present", "present", "present"])
    _ = try cli.succeed("check --read-data --repo repo --quiet")
    // Empty output is not an archive.
    try cli.directory.write("", at: "states/4/docs/note")
    try fixture.setFault(#"{"cut": 0}"#, of: 4)
    #expect(try fixture.lines(kind, code: 3).outcomes.last == "failed")
  }

  @Test func aDryRunListsWhatWouldBeImported() throws {
    let fixture = try PeerFixture(states: 2)
    let text = try fixture.run("restic", "--dry-run")
    #expect(text.output.contains("would import ") && text.output.contains("grace@ada:/docs"))
    #expect(text.output.hasSuffix("would import 2 of 2 snapshots\n"), "\(text.output)")
    #expect(try fixture.lines("borg", "--dry-run").outcomes == ["would-import", "would-import"])
    #expect(try fixture.cli.snapshots().isEmpty)
    #expect(try fixture.calls().allSatisfy { !$0.contains("dump") && !$0.contains("export-tar") })
  }

  @Test func snapshotsAreSelectedByIDAndName() throws {
    let fixture = try PeerFixture()
    let id = try #require(fixture.lines("restic", "--dry-run")[1]["source_id"] as? String)
    let one = try fixture.lines("restic", "--snapshot \(id.prefix(8))")
    #expect(one.count == 2 && one[0]["source_id"] as? String == id)
    let named = try fixture.lines("borg", "--snapshot docs-2024-01-02T03:04:05 --name elsewhere")
    #expect(named.count == 2 && named[0]["name"] as? String == "docs-2024-01-02T03:04:05")
    #expect(
      try fixture.cli.succeed("dump latest:folders/elsewhere/docs/note --repo repo") == "state 2")
    let unknown = try fixture.run("restic", "--snapshot 0123456789abcdef")
    #expect(unknown.code == 1 && unknown.errors.contains("lists no snapshot with that id"))
  }

  /// A snapshot that the program cannot read completely is not stored, even if its archive looks
  /// complete, and the others are imported.
  @Test(
    arguments: ["restic", "borg", "kopia"],
    [
      #"{"cut": 50000, "status": 1}"#, #"{"status": 1}"#, #"{"cut": 50000}"#,
      #"{"cut": 0, "status": 3}"#,
    ])
  func aFailedSnapshotIsNotStored(kind: String, fault: String) throws {
    let fixture = try PeerFixture()
    try fixture.setFault(fault, of: 2)
    let lines = try fixture.lines(kind, code: 3)
    #expect(lines.outcomes == ["imported", "failed", "imported"])
    #expect(lines.summary["failed"] as? Int == 1 && lines.summary["imported"] as? Int == 2)
    let error = lines[1]["error"] as? String ?? ""
    if fault.contains("status") {
      #expect(error.contains("\(kind) ended with status"), "\(error)")
      #expect(error.contains("Fatal: the pack is damaged"), "\(error)")
    } else {
      #expect(error.contains("is damaged"), "\(error)")
    }
    #expect(try fixture.cli.snapshots().count == 2)
    // The next run imports it, in its place by time.
    try fixture.removeFault(of: 2)
    #expect(try fixture.lines(kind).outcomes == ["present", "imported", "present"])
    for (name, number) in [("2024-01-02", 2), ("latest", 3), ("latest~1", 2)] {
      let text = try fixture.cli.succeed("dump \(name):folders/ada/\(path(kind)) --repo repo")
      #expect(text == "state \(number)", "\(name)")
    }
  }

  private func path(_ kind: String) -> String {
    kind == "kopia" ? "srv/files/docs/note" : "docs/note"
  }

  /// If no snapshot can be imported, the command fails.
  @Test func withoutAnyImportTheStatusIsOne() throws {
    let fixture = try PeerFixture(states: 1)
    try fixture.setFault(#"{"status": 2}"#, of: 1)
    let outcome = try fixture.run("restic")
    #expect(outcome.code == 1 && outcome.errors.contains("not imported: "), "\(outcome)")
    #expect(try fixture.cli.snapshots().isEmpty)
  }

  /// Entries that restic omits from archives are reported.
  @Test func omittedSpecialFilesAreNamed() throws {
    let fixture = try PeerFixture(states: 1)
    let docs = try Directory.open(path: fixture.cli.directory.path("states/1/docs"))
    try docs.createSpecial("pipe", kind: .fifo, permissions: 0o600)
    try docs.createSpecial("zz-last", kind: .fifo, permissions: 0o600)
    let outcome = try fixture.run("restic")
    #expect(outcome.code == 3, "\(outcome)")
    for name in ["docs/pipe", "docs/zz-last"] {
      let reason = "not imported: \(name): restic writes no fifo into archives"
      #expect(outcome.errors.contains(reason), "\(outcome.errors)")
    }
    #expect(try fixture.cli.snapshots().count == 1)
  }

  /// A list of entries that is not complete may lack the names of omitted entries.
  @Test func aFailedListOfEntriesIsReported() throws {
    let fixture = try PeerFixture(states: 1)
    try fixture.setFault(#"{"list": 4}"#, of: 1)
    let outcome = try fixture.run("restic")
    #expect(outcome.code == 3, "\(outcome)")
    let reason = "what is omitted after some entry is not known"
    #expect(outcome.errors.contains(reason), "\(outcome.errors)")
    #expect(try fixture.cli.snapshots().count == 1)
  }

  /// Names outside ASCII, and those that sort differently from paths, have the right times.
  @Test(arguments: ["restic", "borg"])
  func oddNamesHaveTheirTimes(kind: String) throws {
    let fixture = try PeerFixture(states: 1)
    let docs = try Directory.open(path: fixture.cli.directory.path("states/1/docs"))
    let names: [ByteString] = ["in-b", "in.d", "new\nline", "caf\u{e9}", "cafe\u{301}", "-n"]
    for (index, name) in names.enumerated() {
      try docs.create(name).write([1])
      let time = Timestamp(seconds: 1_500_000_000 + Int64(index), nanoseconds: 987_654_000)
      try docs.setModified(time, of: name)
    }
    _ = try fixture.lines(kind)
    _ = try fixture.cli.succeed("restore latest:folders/ada/docs --to back --repo repo --quiet")
    let wanted = try TreeRecord.all(in: fixture.cli.directory, "states/1/docs")
    let found = try TreeRecord.all(in: fixture.cli.directory, "back")
    for name in names { #expect(wanted[name] == found[name], "\(name)") }
  }

  /// Nothing of a hostile list becomes an argument, and the valid snapshots are imported.
  @Test func hostileListsAreRefused() throws {
    let fixture = try PeerFixture(states: 2)
    for id in ["--repo=/etc", "latest", "../../x", "AAAAAAAAAAAAAAAAAAAAAAAA", "", "0123;touch x"] {
      try fixture.setFault(#"{"id": "\#(id)"}"#, of: 1)
      let outcome = try fixture.run("restic", "--dry-run --json")
      #expect(outcome.code == 3, "\(id): \(outcome)")
      #expect(outcome.errors.contains("without an ID of hexadecimal digits"), "\(outcome.errors)")
    }
    #expect(try fixture.lines("restic", code: 3).outcomes == ["imported"])
    for call in try fixture.calls() { #expect(!call.contains { $0.contains("etc") }, "\(call)") }
    for (list, reason) in [
      ("{}", "not a list"), ("[", "cannot be read"), ("", "cannot be read"),
      (String(repeating: "[", count: 100_000), "cannot be read"),
    ] {
      try fixture.cli.directory.write(list, at: "states/list.json")
      let outcome = try fixture.run("restic")
      #expect(outcome.code == 1 && outcome.errors.contains(reason), "\(outcome.errors)")
    }
    try fixture.cli.directory.write(
      #"[{"id": "0123456789abcdef0123", "time": "yesterday"}]"#, at: "states/list.json")
    let outcome = try fixture.run("restic")
    #expect(outcome.code == 3 && outcome.errors.contains("has no valid time"), "\(outcome)")
  }

  /// A name with braces, which borg replaces, spaces and a leading hyphen stays one argument.
  @Test func aNameOfAnArchiveIsOneArgument() throws {
    let fixture = try PeerFixture(states: 1)
    let id = String(repeating: "ab", count: 32)
    try fixture.cli.directory.write(
      #"{"archives": [{"name": "-x {now} y", "id": "\#(id)", "start": "2024-01-01T00:00:00"}]}"#,
      at: "states/list.json")
    _ = try fixture.run("borg")
    let calls = try fixture.calls().filter { $0.first == "export-tar" }
    #expect(calls == [["export-tar", "--", "old::-x {{now}} y", "-"]])
    try fixture.cli.directory.write(
      #"{"archives": [{"name": "a/b", "id": "\#(id)", "start": "2024-01-01T00:00:00"}]}"#,
      at: "states/list.json")
    let outcome = try fixture.run("borg")
    #expect(outcome.code == 3 && outcome.errors.contains("has no valid name"), "\(outcome)")
  }

  @Test func aMissingProgramIsNamed() throws {
    let fixture = try PeerFixture(states: 1)
    let outcome = try fixture.cli.run("import kopia --program ./nowhere --repo repo")
    #expect(outcome.code == 1 && outcome.errors.contains("'./nowhere'"), "\(outcome.errors)")
    #expect(outcome.errors.contains("--program PATH"), "\(outcome.errors)")
  }

  /// A password in the URL of a repository is not in the snapshot or in messages.
  @Test func aPasswordInAURLIsNotStored() throws {
    let fixture = try PeerFixture(states: 1)
    let line = "import restic rest:https://ada:s3cret@host/x --program ./peer --repo repo"
    let outcome = try fixture.cli.run(line)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(!(outcome.output + outcome.errors).contains("s3cret"))
    let shown = try fixture.cli.succeed("snapshots show latest --json --repo repo")
    #expect(!shown.contains("s3cret") && shown.contains("rest:https://host/x"), "\(shown)")
  }

  /// A signal ends the program, and the import with 130; the next run continues after the last
  /// complete snapshot. Even SIGKILL leaves no program running.
  @Test(arguments: ["restic", "borg", "kopia"], ["TERM", "KILL"])
  func aKilledImportIsContinued(kind: String, signal: String) throws {
    let fixture = try PeerFixture()
    try fixture.setFault(#"{"hang": true}"#, of: 2)
    let script = """
      mkfifo never
      "$0" import \(kind) old --program ./peer --repo repo & P=$!
      for i in $(seq 3000); do [ -s hanging ] && break; sleep 0.01; done
      sleep 0.3
      kill -\(signal) $P
      (read -t 60 <> never; kill -KILL $P) >/dev/null 2>&1 & K=$!
      wait $P; S=$?
      kill $K
      for i in $(seq 1000); do
        grep -q '^State:.[^Z]' /proc/$(cat hanging)/status 2>/dev/null || exit $S
        sleep 0.01
      done
      exit 99
      """
    let outcome = try fixture.cli.run([], under: ["bash", "-c", script])
    #expect(outcome.code == (signal == "TERM" ? 130 : 137), "\(outcome)")
    if signal == "TERM" {
      #expect(outcome.errors.contains("interrupted: 1 snapshot imported"), "\(outcome.errors)")
    }
    #expect(try fixture.cli.snapshots().count == 1)
    try fixture.removeFault(of: 2)
    #expect(try fixture.lines(kind).outcomes == ["present", "imported", "imported"])
    let check = try fixture.cli.succeed("check --read-data --repo repo")
    #expect(check.hasSuffix("no damage found\n"), "\(check)")
  }
}
