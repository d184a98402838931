import Foundation
import SystemIO
import TestSupport
import Testing

/// Long operations end early on a signal and report their progress on request.
@Suite(.serialized) struct SignalTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    var random = Seeded(7)
    // Incompressible content, for which the debug build takes seconds.
    for number in 0..<32 {
      try cli.directory.write(
        random.bytes(500_000), at: ByteString("tree/folder \(number % 4)/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
  }

  private static let durable = "fsync,fdatasync,syncfs"
  private static let hasLease = #"[ -n "$(ls repo/leases)" ]"#
  private static let readsPacks = "grep -qs packs/ trace"
  private static let backup = "backup --layout folder --root tree --repo repo"

  /// Runs a command in the background of a shell that runs `script` as soon as `begun` holds, for a
  /// backup once it has its lease. `$P` is the command's process ID. Each of the `slow` calls,
  /// which make data durable, takes `seconds`, so that the script ends before the command on any
  /// machine. A shell makes background processes ignore SIGINT. Returns the outcome of the command.
  private func signalled(
    _ script: String, command: String = Self.backup, arguments: String = "",
    under wrapper: String = "", seconds: Double = 0.5, slow calls: String = Self.durable,
    when begun: String = Self.hasLease
  ) throws -> Program.Outcome {
    let delay = "\(calls):delay_enter=\(Int(seconds * 1_000_000))"
    let text = """
      \(wrapper) strace -f -y -o trace -e trace=\(calls) -e inject=\(delay) \
        env --default-signal=INT "$0" \(command) \(arguments) & S=$!
      for i in $(seq 60000); do
        if \(begun); then break; fi
        sleep 0.01
      done
      P=$(pgrep -P $S)
      \(script)
      wait $S
      """
    return try cli.run([], under: ["bash", "-c", text])
  }

  @Test(arguments: ["INT", "TERM", "HUP"])
  func signalEndsABackupWithoutLoss(_ signal: String) throws {
    let outcome = try signalled("kill -\(signal) $P")
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(outcome.errors.contains("stopping after the current step"))
    #expect(outcome.errors.contains("sandboxctl: error: the backup was interrupted"))
    #expect(outcome.errors.contains("sandboxctl: hint: run it again"))
    #expect(try cli.snapshots().isEmpty)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: cli.directory.string + "/repo/leases")
        .isEmpty)
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed(Self.backup)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// A remaining lease would block the next repair for an hour.
  @Test(arguments: ["INT", "TERM", "HUP"])
  func signalEndsARepairWithoutChanges(_ signal: String) throws {
    _ = try cli.succeed(Self.backup + " --quiet")
    for name in try cli.names(in: "repo/index") {
      try FileManager.default.removeItem(atPath: "\(cli.directory.string)/repo/index/\(name)")
    }
    // There are two sync calls between the creation of the lease and the first pack.
    let outcome = try signalled(
      "kill -\(signal) $P", command: "repair index --repo repo", seconds: 4)
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(outcome.errors.contains("it was interrupted before it changed anything"))
    #expect(outcome.errors.contains("sandboxctl: hint: run it again"))
    #expect(try cli.names(in: "repo/leases").isEmpty && cli.names(in: "repo/index").isEmpty)
    #expect(try cli.succeed("repair index --repo repo").hasPrefix("indexed "))
    _ = try cli.succeed("check --repo repo")
  }

  @Test(arguments: ["INT", "TERM", "HUP"])
  func signalEndsACheck(_ signal: String) throws {
    _ = try cli.succeed(Self.backup + " --quiet")
    let outcome = try signalled(
      "kill -\(signal) $P", command: "check --read-data --repo repo", slow: "pread64",
      when: Self.readsPacks)
    #expect(outcome.code == 130 && outcome.output.isEmpty, "\(outcome.errors)")
    #expect(outcome.errors.contains("cannot finish the check of 'repo': it was interrupted"))
    #expect(outcome.errors.contains("sandboxctl: hint: run it again"))
  }

  /// Each command names itself and what it has done, and leaves no lease.
  @Test(arguments: [
    ("forget --keep-last 1 --sizes --dry-run", "cannot find what a removal frees in 'repo'"),
    ("prune", "cannot prune 'repo'"), ("copy --to second", "cannot finish the copy to 'second'"),
    ("stats --growth", "cannot finish reading 'repo'"),
    ("repair packs", "cannot finish the repair of packs in 'repo'"),
    ("repair snapshots", "cannot finish the repair of snapshots in 'repo'"),
    ("mirror --to mirror", ""),
  ])
  func interruptedCommandNamesItself(_ command: String, _ message: String) throws {
    for _ in 0..<2 { _ = try cli.succeed(Self.backup + " --quiet") }
    _ = try cli.succeed("init second --plain --no-default")
    if command.hasPrefix("repair") { try loseEndOfPack() }
    let outcome = try signalled(
      "kill -INT $P", command: command + " --repo repo", slow: "pread64", when: Self.readsPacks)
    #expect(outcome.code == 130, "\(outcome.errors)")
    if message.isEmpty {
      #expect(outcome.output.hasSuffix("interrupted: the next run continues\n"), "\(outcome)")
    } else {
      #expect(outcome.errors.contains("error: \(message): it was interrupted"), "\(outcome)")
      #expect(outcome.errors.contains("hint: run it again"), "\(outcome.errors)")
    }
    for name: ByteString in ["repo", "second"] {
      #expect(try cli.names(in: name.appending("leases")).isEmpty, "\(name)")
    }
    #expect(try cli.snapshots().count == 2)
  }

  @Test func interruptedScanNamesItself() throws {
    let outcome = try signalled(
      "kill -INT $P", command: "classify --layout folder --root tree", slow: "getdents64",
      when: "[ -s trace ]")
    #expect(outcome.code == 130 && outcome.output.isEmpty, "\(outcome)")
    #expect(
      outcome.errors.contains("error: the scan was interrupted\n"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: run it again"), "\(outcome.errors)")
  }

  /// Damages a pack, so that a repair reads it.
  private func loseEndOfPack() throws {
    let path = try #require(try cli.packs().first)
    let bytes = try #require(FileManager.default.contents(atPath: path))
    try bytes.dropLast(1).write(to: URL(fileURLWithPath: path))
  }

  @Test func checkReportsItsProgress() throws {
    _ = try cli.succeed(Self.backup + " --quiet")
    let questions = "while kill -USR1 $P 2> /dev/null; do sleep 0.2; done"
    let outcome = try signalled(
      questions, command: "check --read-data --repo repo", seconds: 0.1, slow: "pread64",
      when: Self.readsPacks)
    #expect(outcome.code == 0 && outcome.output.hasSuffix("no damage found\n"))
    let lines = outcome.errors.split(separator: "\n")
    #expect(
      lines.contains { $0.contains(" of 15.3 MiB, ") && $0.contains(" files") },
      "\(outcome.errors)")
    #expect(lines.allSatisfy { $0.contains(": packs/") }, "\(outcome.errors)")
  }

  @Test func interruptionIsJSONWithTheJSONOption() throws {
    let outcome = try signalled("kill -INT $P", arguments: "--json")
    #expect(outcome.code == 130)
    let line = try #require(outcome.errors.split(separator: "\n").last)
    let failure = try CommandLine.object(line)
    let error = try #require(failure["error"])
    #expect("\(error)".contains("interrupted"))
    #expect(failure["code"] as? String == "interrupted")
  }

  @Test func secondSignalEndsAtOnce() throws {
    // After the first signal the command waits for calls of four seconds.
    let outcome = try signalled("kill -INT $P; sleep 0.3; kill -TERM $P", seconds: 4)
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(!outcome.errors.contains("error:"), "\(outcome.errors)")
    #expect(try cli.snapshots().isEmpty)
    _ = try cli.succeed(Self.backup + " --quiet")
  }

  @Test func ignoredSignalsStayIgnored() throws {
    let outcome = try signalled("kill -HUP $P", under: "nohup")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.snapshots().count == 1)
  }

  @Test func eachProgressRequestIsAnsweredOnce() throws {
    // The first request may precede the scan, and the last may follow the end: requests are sent
    // until the end.
    let questions = "N=0; while kill -USR1 $P 2> /dev/null; do N=$((N+1)); sleep 0.2; done; echo $N"
    let outcome = try signalled(questions, arguments: "--quiet", seconds: 0.4)
    #expect(outcome.code == 0)
    let asked = try #require(Int(outcome.output.dropLast()), "\(outcome.output)")
    let lines = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("sandboxctl: ") }
    #expect((1...asked).contains(lines.count), "\(outcome.errors)")
    #expect(
      lines.contains { $0.contains(" of 15.3 MiB, ") && $0.contains(" of 32 files") },
      "\(outcome.errors)")
  }

  /// With `--json` each line on standard error is JSON, also those after signals.
  @Test func linesAfterSignalsAreJSON() throws {
    let questions = "kill -USR1 $P; sleep 0.4; kill -INT $P"
    let outcome = try signalled(questions, arguments: "--json", seconds: 0.4)
    let lines = outcome.errors.split(separator: "\n")
    let notes = try lines.compactMap { try CommandLine.object($0)["note"] as? String }
    let isStop = { (note: String) in note.hasPrefix("stopping after the current step") }
    #expect(notes.contains(where: isStop), "\(outcome.errors)")
    #expect(notes.contains { !isStop($0) }, "the progress: \(outcome.errors)")
  }

  @Test func withoutATerminalNothingIsDrawn() throws {
    let outcome = try cli.run(Self.backup)
    #expect(outcome.code == 0)
    #expect(
      !outcome.errors.contains("\r") && !outcome.errors.contains("MiB/s"), "\(outcome.errors)")
  }

  // MARK: - On a terminal

  /// Returns the output on a terminal of `columns` columns.
  private func terminal(
    _ columns: Int, _ arguments: String = "", environment: [String: String] = ["TERM": "xterm"]
  ) throws -> String {
    // Sync calls of half a second each, so that progress is drawn on any machine.
    let slow = "strace -f -o trace -e trace=fsync -e inject=fsync:delay_enter=500000"
    let line = "stty cols \(columns) rows 20; \(slow) $PROGRAM \(Self.backup) \(arguments)"
    let outcome = try cli.run(
      [], under: ["bash", "-c", "PROGRAM=$0 script -qec '\(line)' /dev/null"],
      environment: environment)
    #expect(outcome.code == 0, "\(outcome.output)")
    return outcome.output
  }

  /// Returns the lines that were drawn over one another.
  static func drawn(_ output: String) -> [Substring] {
    output.split(separator: "\r").filter { $0.hasSuffix("\u{1B}[K") && $0.count > 3 }
      .map { $0.dropLast(3) }
  }

  @Test func onATerminalOneLineIsDrawn() throws {
    let start = Host.monotonicSeconds()
    let output = try terminal(100)
    let seconds = Host.monotonicSeconds() - start
    let lines = Self.drawn(output)
    #expect(
      !lines.isEmpty && Double(lines.count) <= seconds * 10 + 1, "\(lines.count) in \(seconds) s")
    let last = try #require(lines.last { $0.contains("folders/tree/folder") })
    #expect(last.contains(" of 15.3 MiB, ") && last.contains(" of 32 files"), "\(last)")
    #expect(lines.contains { $0.contains("MiB/s") })
    // The line is erased before the result is printed.
    let rest = try #require(output.components(separatedBy: "\r\u{1B}[K").last)
    #expect(rest.contains("folders/tree") && !rest.contains("MiB/s"), "\(rest)")
  }

  @Test(arguments: [30, 60, 200])
  func progressLineFitsTheTerminal(_ columns: Int) throws {
    let lines = Self.drawn(try terminal(columns))
    #expect(!lines.isEmpty)
    for line in lines { #expect(line.count < columns, "\(line)") }
  }

  @Test func quietAndJSONDrawNothing() throws {
    #expect(try Self.drawn(terminal(10)).isEmpty)
    #expect(try Self.drawn(terminal(100, "--quiet")).isEmpty)
    #expect(try Self.drawn(terminal(100, "--json")).isEmpty)
    #expect(try Self.drawn(terminal(100, environment: ["TERM": "dumb"])).isEmpty)
  }
}
