import Foundation
import SystemIO
import TestSupport
import Testing

/// Devices and a repository for which commands produce rich answers, and these answers.
struct SchemaFixture {
  let cli: CommandLine
  private var answers: [Answer] = []
  /// The ID of the first snapshot, which is of the sample device.
  private var device = ""

  /// An output line and its schema.
  private struct Answer: Encodable {
    let schema: String
    let run: String
    let line: String
  }

  init(isEmpty: Bool = false) throws {
    cli = try CommandLine()
    if isEmpty { return }
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    // The lease of a program on another host.
    for name: ByteString in ["alive", "by-1-host"] {
      try cli.directory.write(
        [], at: ByteString("repo/leases/00000000000000000000000000000001").appending(name))
    }
    for name: ByteString in ["one", "two", "wrong"] {
      try cli.directory.write("the passphrase \(name)\n", at: name)
    }
    try OddTree.make(in: cli.directory, at: "odd")
    try cli.directory.write("text\n", at: "text.txt")
    try cli.directory.write(
      "<full-backup-content><exclude domain='root' path='Documents'/></full-backup-content>",
      at: "rules.xml")
    try makeGuarded()
    try makeCacheNames()
    try makeLayouts()
    try makePeer()
    for (name, app) in [("New.app", "notebook"), ("Other.app", "other")] {
      try cli.directory.write(
        """
        <plist><dict><key>CFBundleIdentifier</key><string>org.example.\(app)</string>
        <key>CFBundleShortVersionString</key><string>90.0</string></dict></plist>
        """, at: ByteString("\(name)/Info.plist"))
    }
    for (name, rule) in [("bad", "match: [x]"), ("wrong", "match: x/**, class: cache")] {
      try cli.directory.write(
        """
        policy: \(name)
        schema: 1
        extends: [common]
        rules:
          - {id: a, \(rule)}
        examples:
          - {in: data, path: x/y, class: user-data}

        """, at: ByteString("\(name).yaml"))
    }
  }

  /// Makes a directory with a file of a class of data protection, and its repository.
  private func makeGuarded() throws {
    _ = try cli.succeed("init guarded-repo --plain")
    try cli.directory.write("secret\n", at: "guarded/secret")
    let directory = try Directory.open(path: cli.directory.path("guarded"))
    try directory.attributes(of: "secret").set(
      "user.sandboxctl.protection-class", to: Array("1".utf8))
  }

  /// Makes a program that imitates other backup programs, and fails for the second of its states.
  private func makePeer() throws {
    try PeerFixture.install(in: cli, at: "peer")
    for number in 1...2 {
      try cli.directory.write("state \(number)", at: ByteString("states/\(number)/docs/note"))
    }
    try cli.directory.write(#"{"status": 1}"#, at: "states/2.json")
  }

  /// Makes kept directories whose names suggest a cache, in an app and in a group of the device.
  private func makeCacheNames() throws {
    for path in ["apps/org.example.notebook/data", "groups/group.org.example.library"] {
      let entries = try cli.jsonLines("classify --root device --json \(path)")
      let real = try #require(entries.first?.path("real_path"))
      let inner = real.relative(to: cli.directory.path(""))
      try cli.directory.write("x", at: inner.appending("Image Cache/file"))
    }
  }

  /// Runs a command and records its output.
  mutating func run(_ command: String, _ runs: [SchemaTests.Run]) throws {
    for var run in runs {
      if run.line.contains("{device}") {
        if device.isEmpty { device = try cli.snapshots().first ?? "" }
        run.line = run.line.replacing("{device}", with: device)
      }
      let outcome = try cli.run(run.line)
      #expect(outcome.code == run.code, "\(run.line): \(outcome.errors)")
      if run.line != "policy lint ios --json" {
        let reported = run.code == 0 ? outcome.output : outcome.output + outcome.errors
        #expect(!reported.isEmpty || run.code == 4, "\(run.line)")
      }
      add(command, run.line, outcome.output)
      add("messages", run.line, outcome.errors)
    }
  }

  /// Records lines that must match a schema.
  mutating func add(_ schema: String, _ run: String, _ lines: String) {
    for line in lines.utf8.split(separator: UInt8(ascii: "\n")) {
      answers.append(
        Answer(schema: schema, run: run, line: String(decoding: line, as: UTF8.self)))
    }
  }

  /// Destroys the beginning of a snapshot and the frames of a tree pack.
  func damage() throws {
    let newest = try #require(cli.snapshots().last)
    _ = try cli.succeed("backup --layout folder --root odd --repo repo --quiet --json --tag last")
    for pack in try cli.packs() { try cli.flip(byte: 60, of: pack) }
    try cli.flip(byte: 20, of: cli.path(ofSnapshot: newest))
  }

  /// Validates all recorded lines against their schemas. Returns a sentence for each error.
  func validate() throws -> [String] {
    let outcome = try Program.run(
      "/usr/bin/python3", ["-B", Self.validator, Self.schemas],
      input: Array(try JSONEncoder().encode(answers)))
    try #require(outcome.code == 0, "\(outcome.errors)")
    return outcome.output.split(separator: "\n").map(String.init)
  }

  private static let schemas = Shared.packageRoot.appendingPathComponent("docs/json").path
  private static let validator = Shared.packageRoot.appendingPathComponent(
    "Tests/CommandTests/Programs/validate.py"
  ).path
}
