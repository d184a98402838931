import Foundation
import SystemIO
import TestSupport
import Testing

/// A backup run by Debian's cron without a login environment, and concurrent runs.
struct CronTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: "home/.var/app/org.example.App/data/kept")
    for name: ByteString in ["config", "cache"] {
      _ = try Directory.make(
        path: cli.directory.path("home/.var/app/org.example.App").appending(name))
    }
  }

  /// Runs cron in its own namespace, whose only crontab is that of this test, until the job's shell
  /// has written `status`, for at most 450 seconds; cron starts jobs at each full minute.
  private static let script = """
    set -e
    mount -t tmpfs tmpfs /var/spool/cron
    mkdir -m 1730 /var/spool/cron/crontabs
    mount -t tmpfs tmpfs /etc/cron.d
    mount -t tmpfs tmpfs /run
    : > nothing
    mount --bind nothing /etc/crontab
    crontab table
    "$0" schedule install --cron --calendar '* * * * *' --metrics "$PWD/run.prom"
    crontab -l > installed
    env -i /usr/sbin/cron -f &
    C=$!
    for i in $(seq 4500); do
      if [ -s status ]; then break; fi
      sleep 0.1
    done
    kill $C
    "$0" schedule remove
    crontab -l > left
    """

  @Test func backupRunsUnderCron() throws {
    guard Host.userID == 0, Program.exists("cron"), try Mount.isPermitted() else {
      print("skipped: a cron of its own needs root, mounts and the package cron")
      return
    }
    let root = cli.directory.string
    // The job's shell records its environment and its output.
    let shell = "#!/bin/sh\nenv > environment; /bin/sh \"$@\" > said 2>&1; echo $? > status\n"
    try cli.directory.write(shell, at: "shell")
    _ = try Program.run("chmod", ["755", root + "/shell"])
    let table = "# not ours\nSHELL=\(root)/shell\nHOME=\(root)\n 7 7 7 7 7  echo \\% \n"
    try cli.directory.write(table, at: "table")
    // The job starts in HOME, which contains the test's home directory `home`: the apps are below
    // it.
    let apps = ["-ec", "mv home/.var . ; exec \"$@\"", "sh"]
    let outcome = try cli.run(
      [],
      under: ["unshare", "--mount", "--propagation", "private", "sh"] + apps
        + ["bash", "-c", Self.script])
    #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
    #expect(try text("said").isEmpty)
    #expect(try text("status") == "0\n")
    #expect(try text("environment").contains("\nPWD=\(root)\n"))
    #expect(try !text("environment").contains("XDG_"))
    #expect(try text("installed").hasPrefix(table))
    #expect(try text("left") == table)
    let own = ".local/share/sandboxctl/repository"
    let snapshots = try cli.jsonLines("snapshots --json --repo \(own)")
    #expect(snapshots.first?["reason"] as? String == "scheduled")
    #expect(try cli.succeed("ls latest:App/data --repo \(own)").contains("kept"))
    #expect(try ExpositionText(text("run.prom")).value("last_exit_code") == 0)
  }

  private func text(_ path: ByteString) throws -> String {
    String(decoding: try cli.directory.read(path), as: UTF8.self)
  }

  // MARK: - Concurrent runs

  /// Runs a script while another process holds the lock of the source, until `held` is removed.
  private func whileLocked(_ script: String) throws -> Program.Outcome {
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup")
    let text = """
      LOCK=$(ls home/.cache/sandboxctl/*/*.lock)
      flock "$LOCK" sh -c 'touch held; while [ -e held ]; do sleep 0.05; done' &
      while [ ! -e held ]; do sleep 0.05; done
      \(script)
      rm -f held
      wait
      """
    return try cli.run([], under: ["bash", "-c", text])
  }

  @Test func secondRunExitsAtOnceAsBusy() throws {
    let outcome = try whileLocked(
      """
      timeout 600 "$0" backup --quiet; echo $?
      timeout 600 strace -f -o trace -e trace=openat "$0" backup --lock-wait 1s --json; echo $?
      """)
    #expect(outcome.output == "11\n11\n", "\(outcome.errors)")
    #expect(outcome.errors.contains("another backup of the same source is in progress"))
    #expect(outcome.errors.contains("--lock-wait"))
    // It has not scanned the source.
    #expect(try !text("trace").contains("\"kept\""))
    #expect(try cli.snapshots().count == 1)
  }

  @Test func waitingRunContinuesAfterTheFirst() throws {
    let outcome = try whileLocked(
      """
      (timeout 1500 "$0" backup --quiet --lock-wait 20m; echo $? > status) &
      sleep 0.5; echo later > home/.var/app/org.example.App/data/later; rm held
      while [ ! -s status ]; do sleep 0.05; done; cat status
      """)
    #expect(outcome.output == "0\n", "\(outcome.errors)")
    // The snapshot contains the file that was written during the wait.
    #expect(try cli.succeed("ls latest:App/data").contains("later"))
  }

  @Test func waitEndsOnASignal() throws {
    let outcome = try whileLocked(
      """
      strace -f -o trace -e trace=flock env --default-signal=TERM "$0" backup --lock-wait 10m &
      S=$!
      until [ "$(grep -c EAGAIN trace)" -ge 2 ]; do sleep 0.05; done
      pkill -TERM -P $S
      wait $S; echo $?
      """)
    #expect(outcome.output == "130\n", "\(outcome.errors)")
  }

  @Test func scanEndsOnASignal() throws {
    for number in 0..<3000 {
      try cli.directory.write("x", at: ByteString("home/.var/app/org.example.App/data/\(number)/x"))
    }
    _ = try cli.succeed("init repo --plain")
    // Each listing takes 0.2 seconds, so that a complete scan would take minutes.
    let script = """
      strace -f -o trace -e trace=getdents64 -e inject=getdents64:delay_enter=200000 \
        env --default-signal=TERM "$0" backup &
      S=$!
      until [ "$(grep -c getdents64 trace)" -ge 40 ]; do sleep 0.05; done
      pkill -TERM -P $S
      wait $S; echo $?
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    #expect(outcome.output == "130\n", "\(outcome.errors)")
    #expect(outcome.errors.contains("the backup was interrupted"))
    let calls = try text("trace").components(separatedBy: "getdents64(").count
    #expect(calls < 2000, "\(calls) listings")
    #expect(try cli.snapshots().isEmpty)
  }

  // MARK: - Progress

  @Test func progressIsOneLineEachSecond() throws {
    try cli.directory.write([UInt8](repeating: 1, count: 100_000), at: "tree/file")
    _ = try cli.succeed("init repo --plain")
    let outcome = try cli.run(
      ["backup", "--layout", "folder", "--root", "tree", "--json", "--verbose"],
      under: [
        "strace", "-f", "-o", "trace", "-e", "trace=fsync,fdatasync,syncfs",
        "-e", "inject=fsync,fdatasync,syncfs:delay_enter=700000",
      ])
    #expect(outcome.code == 0, "\(outcome.errors)")
    let lines = try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
    let events = lines.dropLast()
    #expect(!events.isEmpty && events.allSatisfy { $0["event"] as? String == "progress" })
    #expect(events.contains { $0["bytes_to_do"] as? Int == 100_000 })
    #expect(lines.last?["snapshot"] as? String != nil)
  }
}
