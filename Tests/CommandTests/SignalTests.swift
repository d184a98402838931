import Foundation
import SystemIO
import TestSupport
import Testing

/// Long operations end early on a signal and report their progress on request.
struct SignalTests {
  private let fixture: SignalFixture
  private var cli: CommandLine { fixture.cli }

  init() throws { fixture = try SignalFixture() }

  @Test(arguments: ["INT", "TERM", "HUP"])
  func signalEndsABackupWithoutLoss(_ signal: String) throws {
    let outcome = try fixture.signalled("kill -\(signal) $P")
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(outcome.errors.contains("stopping after the current step"))
    #expect(outcome.errors.contains("sandboxctl: error: the backup was interrupted"))
    #expect(outcome.errors.contains("sandboxctl: hint: run it again"))
    #expect(try cli.snapshots().isEmpty)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: cli.directory.string + "/repo/leases")
        .isEmpty)
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed(SignalFixture.backup)
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// A remaining lease would block the next repair for an hour.
  @Test(arguments: ["INT", "TERM", "HUP"])
  func signalEndsARepairWithoutChanges(_ signal: String) throws {
    _ = try cli.succeed(SignalFixture.backup + " --quiet")
    for name in try cli.names(in: "repo/index") {
      try FileManager.default.removeItem(atPath: "\(cli.directory.string)/repo/index/\(name)")
    }
    // There are two sync calls between the creation of the lease and the first pack.
    let outcome = try fixture.signalled(
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
    _ = try cli.succeed(SignalFixture.backup + " --quiet")
    let outcome = try fixture.signalled(
      "kill -\(signal) $P", command: "check --read-data --repo repo", slow: "pread64",
      when: SignalFixture.readsPacks)
    #expect(outcome.code == 130 && outcome.output.isEmpty, "\(outcome.errors)")
    #expect(outcome.errors.contains("cannot finish the check of 'repo': it was interrupted"))
    #expect(outcome.errors.contains("sandboxctl: hint: run it again"))
  }

  @Test func checkReportsItsProgress() throws {
    _ = try cli.succeed(SignalFixture.backup + " --quiet")
    let questions = "while kill -USR1 $P 2> /dev/null; do sleep 0.2; done"
    let outcome = try fixture.signalled(
      questions, command: "check --read-data --repo repo", seconds: 0.1, slow: "pread64",
      when: SignalFixture.readsPacks)
    #expect(outcome.code == 0 && outcome.output.hasSuffix("no damage found\n"))
    let lines = outcome.errors.split(separator: "\n")
    #expect(
      lines.contains { $0.contains(" of 15.3 MiB, ") && $0.contains(" files") },
      "\(outcome.errors)")
    #expect(lines.allSatisfy { $0.contains(": packs/") }, "\(outcome.errors)")
  }

  @Test func interruptionIsJSONWithTheJSONOption() throws {
    let outcome = try fixture.signalled("kill -INT $P", arguments: "--json")
    #expect(outcome.code == 130)
    let line = try #require(outcome.errors.split(separator: "\n").last)
    let failure = try CommandLine.object(line)
    let error = try #require(failure["error"])
    #expect("\(error)".contains("interrupted"))
    #expect(failure["code"] as? String == "interrupted")
  }

  @Test func secondSignalEndsAtOnce() throws {
    // After the first signal the command waits for calls of four seconds.
    let outcome = try fixture.signalled("kill -INT $P; sleep 0.3; kill -TERM $P", seconds: 4)
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(!outcome.errors.contains("error:"), "\(outcome.errors)")
    #expect(try cli.snapshots().isEmpty)
    _ = try cli.succeed(SignalFixture.backup + " --quiet")
  }

  @Test func ignoredSignalsStayIgnored() throws {
    let outcome = try fixture.signalled("kill -HUP $P", under: "nohup")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.snapshots().count == 1)
  }

  @Test func eachProgressRequestIsAnsweredOnce() throws {
    // The first request may precede the scan, and the last may follow the end: requests are sent
    // until the end.
    let questions = "N=0; while kill -USR1 $P 2> /dev/null; do N=$((N+1)); sleep 0.2; done; echo $N"
    let outcome = try fixture.signalled(questions, arguments: "--quiet", seconds: 0.4)
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
    let outcome = try fixture.signalled(questions, arguments: "--json", seconds: 0.4)
    let lines = outcome.errors.split(separator: "\n")
    let notes = try lines.compactMap { try CommandLine.object($0)["note"] as? String }
    let isStop = { (note: String) in note.hasPrefix("stopping after the current step") }
    #expect(notes.contains(where: isStop), "\(outcome.errors)")
    #expect(notes.contains { !isStop($0) }, "the progress: \(outcome.errors)")
  }
}
