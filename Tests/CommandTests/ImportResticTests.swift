import Foundation
import SystemIO
import TestSupport
import Testing

/// `import restic` and `import borg` with these programs.
struct ImportResticTests {
  private let cli: CommandLine
  /// The environment in which the programs find their passwords.
  private let passwords: [String: String]

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    try cli.directory.write("the password", at: "word")
    try cli.directory.write("another password", at: "wrong")
    passwords = [
      "RESTIC_PASSWORD_FILE": cli.directory.string + "/word",
      "BORG_PASSCOMMAND": "cat \(cli.directory.string)/word",
    ]
  }

  /// Makes a repository `old` with the three states of a tree; `states` has copies of them.
  private func makeRepository(_ kind: String) throws {
    try OddNames.make(in: cli.directory, at: "tree")
    let initialize =
      kind == "restic"
      ? "restic -q init --repo old"
      : "borg init --encryption repokey old"
    let save =
      kind == "restic"
      ? #"restic -q --repo old backup --host ada --tag t$n --time "2024-01-0$n 03:04:05" "$PWD/tree""#
      : #"borg create --timestamp 2024-01-0${n}T03:04:05 "old::tree-2024-01-0$n" tree"#
    try shell(
      """
      \(initialize)
      for n in 1 2 3; do
        case $n in
          2) echo more >> tree/text; rm tree/dangling;;
          3) chmod 600 tree/text; head -c 100000 /dev/urandom > tree/inner/new;;
        esac
        find tree -depth -exec touch -h -d "2023-05-0${n}T07:08:09.123456Z" {} +
        \(save)
        mkdir -p states; cp -a tree states/$n
      done
      """)
  }

  private func shell(_ script: String) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-ec", script],
      environment: cli.environment.merging(passwords) { $1 }.merging(["LC_ALL": "C.UTF-8"]) { $1 },
      cleanEnvironment: true, in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  private func run(
    _ kind: String, _ options: [String] = [], environment: [String: String]? = nil
  ) throws -> Program.Outcome {
    try cli.run(
      ["import", kind, "old", "--repo", "repo", "--json"] + options,
      environment: environment ?? passwords)
  }

  private func lines(_ outcome: Program.Outcome) throws -> [[String: Any]] {
    try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
  }

  /// Bytes, modes, times, owners, attributes and links are those of the source.
  @Test(arguments: ["restic", "borg"])
  func importedSnapshotsAreRestoredAsTheyWere(kind: String) throws {
    try makeRepository(kind)
    let outcome = try run(kind)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let lines = try lines(outcome)
    #expect(lines.outcomes == ["imported", "imported", "imported"])
    #expect(lines[1]["new_bytes"] as? Int ?? 999_999 < 10_000, "\(lines[1])")
    let host = try #require(lines[0]["host"] as? String)
    for (index, line) in lines.dropLast().enumerated() {
      #expect(line["time"] as? String == "2024-01-0\(index + 1)T03:04:05Z")
      let id = try #require(line["id"] as? String)
      let path = kind == "restic" ? cli.directory.string + "/tree" : "/tree"
      _ = try cli.succeed(
        "restore \(id):folders/\(host)\(path) --to back\(index) --repo repo --quiet")
      try expectState("states/\(index + 1)", "back\(index)", kind)
    }
    if kind == "restic" {
      #expect(host == "ada" && lines[0]["tags"] as? [String] == ["t1"])
    }
    let again = try self.lines(try run(kind))
    #expect(again.outcomes == ["present", "present", "present"])
    #expect(try cli.snapshots().count == 3)
  }

  private func expectState(_ state: String, _ back: String, _ kind: String) throws {
    let wanted = try TreeRecord.all(in: cli.directory, ByteString(state))
    let found = try TreeRecord.all(in: cli.directory, ByteString(back))
    #expect(Set(wanted.keys) == Set(found.keys))
    for path in wanted.keys where !path.isEmpty {
      guard var before = wanted[path], var after = found[path] else { continue }
      (before.extents, after.extents) = ([], [])
      // restic's archives have no hard links, borg's no attributes.
      if kind == "restic" { (before.firstName, after.firstName) = (nil, nil) }
      if kind == "borg" { (before.attributes, after.attributes) = ([:], [:]) }
      #expect(before == after, "\(state) \(path)")
    }
  }

  @Test(arguments: ["restic", "borg"])
  func aWrongPasswordIsReported(kind: String) throws {
    try makeRepository(kind)
    let wrong = try run(
      kind,
      environment: [
        "RESTIC_PASSWORD_FILE": cli.directory.string + "/wrong", "BORG_PASSPHRASE": "another one",
      ])
    #expect(wrong.code == 12, "\(wrong.errors)")
    #expect(wrong.errors.contains("in the environment"), "\(wrong.errors)")
    // The program has no terminal on which it could prompt.
    let missing = try run(kind, environment: [:])
    #expect(missing.code == 12, "\(missing.errors)")
    #expect(try cli.snapshots().isEmpty)
    let nowhere = try cli.run(
      ["import", kind, "nowhere", "--repo", "repo"], environment: passwords)
    #expect(nowhere.code == 1 && nowhere.errors.contains("ended with status"), "\(nowhere)")
  }

  /// If a pack of restic is damaged, the snapshots that need it are not stored.
  @Test func aDamagedRepositoryGivesItsSoundSnapshots() throws {
    try makeRepository("restic")
    try shell(
      """
      find old/data -type f | sort > before
      head -c 50000 /dev/urandom > tree/late
      restic -q --repo old backup --host ada --time "2024-01-04 03:04:05" "$PWD/tree"
      find old/data -type f | sort > after
      for pack in $(comm -13 before after); do
        if [ $(stat -c %s $pack) -gt 40000 ]; then
          chmod u+w $pack
          printf damage | dd of=$pack bs=1 seek=1000 conv=notrunc status=none
        fi
      done
      rm -rf home/.cache
      """)
    let outcome = try run("restic")
    #expect(outcome.code == 3, "\(outcome)")
    #expect(try lines(outcome).outcomes == ["imported", "imported", "imported", "failed"])
    #expect(outcome.errors.contains("restic ended with status"), "\(outcome.errors)")
    #expect(try cli.snapshots().count == 3)
  }

  /// borg prints a traceback and lines about the system around the cause.
  @Test func theCauseOfBorgsFailureIsShown() throws {
    try makeRepository("borg")
    try shell(
      """
      segment=$(ls -S old/data/0/* | head -n 1)
      printf damage | dd of=$segment bs=1 seek=150000 conv=notrunc status=none
      """)
    let outcome = try run("borg")
    #expect(outcome.code == 1 || outcome.code == 3, "\(outcome)")
    #expect(outcome.errors.contains("Data integrity error: "), "\(outcome.errors)")
    for noise in ["SSH_ORIGINAL_COMMAND", "PID: ", "sys.argv"] {
      #expect(!outcome.errors.contains(noise), "\(outcome.errors)")
    }
  }

  /// restic writes a special file at the top of a snapshot into the archive, as an empty file. Its
  /// list has one replacement for the bytes 0xFE and 0xFF, which does not make the file a FIFO.
  @Test func specialFilesAtTheTopDoNotBecomeFiles() throws {
    try shell(
      """
      mkdir -p tree/inner
      mkfifo tree/a tree/inner/b "$(printf 'tree/inner/x\\376')"
      echo text > "$(printf 'tree/inner/x\\377')"
      echo text > tree/c
      restic -q init --repo old
      cd tree
      restic -q --repo ../old backup --host ada .
      """)
    let outcome = try cli.run(
      ["import", "restic", "old", "--repo", "repo"], environment: passwords)
    #expect(outcome.code == 3, "\(outcome)")
    for path in ["a", "inner/b"] {
      #expect(
        outcome.errors.contains("not imported: \(path): restic writes no fifo"),
        "\(outcome.errors)")
    }
    #expect(!outcome.errors.contains("in whole seconds"), "\(outcome.errors)")
    _ = try cli.succeed("restore latest:folders/ada --to back --repo repo --quiet")
    let found = try TreeRecord.all(in: cli.directory, "back")
    let file = ByteString(Array("inner/x".utf8) + [0xFF])
    #expect(Set(found.keys.filter { !$0.isEmpty }) == ["c", "inner", file])
  }
}

/// A small tree of entries that tar archives of both programs can contain.
private enum OddNames {
  static func make(in directory: TemporaryDirectory, at path: ByteString) throws {
    try directory.write("text\n", at: path.appending("text"))
    try directory.write("composed", at: path.appending("caf\u{e9}"))
    try directory.write("decomposed", at: path.appending("cafe\u{301}"))
    try directory.write([1], at: path.appending(ByteString([0xff, 0xfe, UInt8(ascii: "x")])))
    try directory.write("", at: path.appending("inner/-n"))
    try directory.write(Seeded(3).randomBytes(300_000), at: path.appending("inner/large"))
    try directory.write("x", at: path.appending("inner-b/in"))
    let root = try Directory.open(path: directory.path(path))
    try root.createLink("link", to: "inner/large")
    try root.createLink("dangling", to: "/no/where")
    try root.createHardLink("twin", to: "text", in: root)
    try root.setPermissions(0o4755, of: "inner-b")
    try root.setPermissions(0o440, of: "caf\u{e9}")
    try root.attributes(of: "text").set("user.note", to: Array("small".utf8))
    if Host.userID == 0 { try root.setOwner(user: 1234, group: 4321, of: "inner-b") }
  }
}
