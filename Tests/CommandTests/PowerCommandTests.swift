import Foundation
import SystemIO
import TestSupport
import Testing

/// The conditions of a backup, and the cost of runs that have nothing to do (docs/power.md).
struct PowerCommandTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
  }

  private static let backup = "backup --root device --repo repo"

  /// Runs a backup with programs of these names and outputs first in PATH.
  private func backUp(
    _ options: String, with programs: [ByteString: String]
  ) throws -> Program.Outcome {
    for (name, output) in programs {
      let path = ByteString("bin").appending(name)
      try cli.directory.write("#!/bin/sh\necho '\(output)'\n", at: path)
    }
    let script = "chmod +x bin/*; PATH=\"$PWD/bin:$PATH\"; exec \"$0\" \(Self.backup) \(options)"
    return try cli.run([], under: ["bash", "-c", script])
  }

  private var snapshots: Int {
    get throws { try cli.succeed("snapshots list --repo repo --json").split(separator: "\n").count }
  }

  @Test(arguments: [
    ("--when unmetered", "busctl", "u 1", "the network is metered"),
    ("--when on-ac --when unmetered", "busctl", "u 3", "the network is metered"),
    ("--when on-ac,unmetered", "busctl", "u 3", "the network is metered"),
    ("--when idle", "loginctl", "IdleHint=no", "a session is in use"),
  ])
  func aConditionThatDoesNotHoldSkipsTheBackupInOneLine(
    _ options: String, _ program: ByteString, _ answer: String, _ reason: String
  ) throws {
    let outcome = try backUp(options, with: [program: answer])
    #expect(outcome.code == 0 && outcome.output.isEmpty)
    #expect(outcome.errors == "note: backup skipped: \(reason)\n")
    let quiet = try backUp(options + " --quiet", with: [program: answer])
    #expect(quiet.code == 0 && quiet.errors.isEmpty)
    #expect(try snapshots == 0)
  }

  @Test(arguments: ["u 2", "u 4", "u 0"])
  func anUnmeteredOrUnknownNetworkPermitsTheBackup(_ answer: String) throws {
    let outcome = try backUp("--when unmetered --quiet", with: ["busctl": answer])
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try snapshots == 1)
  }

  @Test func onlyALoadIsAMaximum() throws {
    for options in ["--max-load=-1", "--max-load nan", "--max-load inf", "--max-load x"] {
      #expect(try cli.run(Self.backup + " " + options).code == 2)
    }
    #expect(try snapshots == 0)
  }

  /// Runs a backup that sees a different load average, in a separate mount namespace.
  @Test(.enabled(if: SmallVolume.isPermitted)) func aHighLoadSkipsTheBackup() throws {
    try cli.directory.write("2.50 0.10 0.10 1/200 4711\n", at: "load")
    func backUp(_ options: String) throws -> Program.Outcome {
      let script = "mount --bind load /proc/loadavg && exec \"$0\" \(Self.backup) \(options)"
      return try cli.run([], under: ["unshare", "--mount", "bash", "-c", script])
    }
    let skipped = try backUp("--max-load 2.4")
    #expect(skipped.code == 0 && skipped.output.isEmpty)
    #expect(skipped.errors == "note: backup skipped: the load is 2.5, above 2.4\n")
    #expect(try backUp("--max-load 2.4 --quiet").errors.isEmpty)
    #expect(try snapshots == 0)
    #expect(try backUp("--max-load 2.5 --quiet").code == 0)
    #expect(try snapshots == 1)
  }

  @Test func schedulesPassTheConditionsOn() throws {
    for options in [
      "--when on-ac --when idle --when unmetered", "--when idle,on-ac,unmetered --when on-ac",
    ] {
      let install = "schedule install --dry-run \(options)"
      let units = try cli.succeed(install + " --systemd")
      #expect(units.contains("\nConditionACPower=true\n"))
      #expect(units.contains(" --when idle,unmetered\n"), "\(units)")
      let line = try cli.succeed(install + " --cron")
      #expect(line.contains(" --when idle,unmetered --when on-ac"), "\(line)")
    }
  }

  @Test(arguments: ["idle,", ",idle", "idle,on-fire", "idle unmetered", "''"])
  func anUnknownConditionInAListIsRefused(_ list: String) throws {
    let words = Self.backup.split(separator: " ").map(String.init)
    let outcome = try cli.run(words + ["--when", list])
    #expect(outcome.code == 2 && outcome.errors.contains("--when"), "\(outcome.errors)")
    #expect(try snapshots == 0)
  }

  /// 19 kB are measured for the sample device: the snapshot, its lease and the state.
  @Test func anUnchangedRunWritesLittle() throws {
    for _ in 0..<2 { _ = try cli.succeed(Self.backup + " --quiet") }
    let script = """
      import os, subprocess, sys
      process = subprocess.Popen([sys.argv[1]] + sys.argv[2].split())
      os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
      for line in open(f"/proc/{process.pid}/io"):
          if line.startswith("wchar:"): print(line.split()[1])
      """
    let text = "exec python3 -c '\(script)' \"$0\" '\(Self.backup) --quiet'"
    let outcome = try cli.run([], under: ["bash", "-c", text])
    let written = try #require(Int(outcome.output.trimmingCharacters(in: .newlines)))
    #expect(written < 256 << 10)
  }

  @Test func aWatchSleepsUntilItsNextCheck() throws {
    let script = """
      "$0" purge --watch --yes --root device --until-free 1 & P=$!
      switches() { awk '/^voluntary/ {n += $2} END {print n}' /proc/$P/task/*/status; }
      sleep 2; A=$(switches); sleep 6; B=$(switches)
      kill -TERM $P; wait $P
      echo $((B - A))
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    let wakeups = try #require(Int(outcome.output.trimmingCharacters(in: .newlines)))
    #expect(wakeups <= 2, "\(outcome.errors)")
  }
}
