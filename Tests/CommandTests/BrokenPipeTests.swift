import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands whose reader ends first, as in `sandboxctl dump … | head`: SIGPIPE ends them silently,
/// and they leave no lease, for which a prune would wait an hour.
@Suite(.enabled(if: Strace.isPermitted)) struct BrokenPipeTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    var random = Seeded(11)
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("init second --plain --no-default")
    for _ in 0..<2 {
      for number in 0..<4 {
        try cli.directory.write(random.bytes(200_000), at: ByteString("tree/\(number)"))
      }
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    }
  }

  /// Runs a command whose output nobody reads. Each of the `slow` calls takes 0.4 seconds, so that
  /// events are due before the end on any machine.
  private func unread(_ command: String, slow calls: String) throws -> Program.Outcome {
    let slow = "strace -f -o trace -e trace=\(calls) -e inject=\(calls):delay_enter=400000"
    let text = """
      mkfifo out
      exec 3<>out 4>out 3>&-
      \(calls.isEmpty ? "" : slow) "$0" \(command) --repo repo >&4
      exit $?
      """
    return try cli.run([], under: ["bash", "-c", text])
  }

  /// Expects that a command ended by SIGPIPE, and that the repositories are free and intact.
  private func expectEnd(_ outcome: Program.Outcome) throws {
    #expect(outcome.code == 141, "\(outcome.errors)")
    #expect(!outcome.errors.contains("error"), "\(outcome.errors)")
    for repository in ["repo", "second"] {
      #expect(try cli.names(in: ByteString("\(repository)/leases")).isEmpty, "\(repository)")
      let check = try cli.run("check --read-data --quiet --repo \(repository)")
      #expect(check.code == 0, "\(check.output) \(check.errors)")
    }
  }

  @Test(arguments: [
    "dump latest:folders/tree/0", "dump latest:folders/tree", "find 0", "stats --growth",
    "check --read-data", "snapshots --json", "--help",
    "backup --layout folder --root tree", "prune", "copy --to second", "repair index",
  ])
  func commandWithoutAReaderEndsBySignal(_ command: String) throws {
    try expectEnd(unread(command, slow: ""))
  }

  private static let durable = "fsync,fdatasync,syncfs"

  /// Events are written while leases are held.
  @Test(arguments: [
    ("backup --layout folder --root tree", durable), ("check --read-data", "pread64"),
    ("forget latest~1 --prune", durable), ("copy --to second", durable),
    ("repair index", "pread64,fsync"), ("repair packs", "pread64,fsync"),
    ("repair snapshots", "pread64,fsync"),
  ])
  func eventsWithoutAReaderEndTheWork(_ command: String, _ slow: String) throws {
    var random = Seeded(12)
    try cli.directory.write(random.bytes(200_000), at: "tree/0")
    if command == "repair index" {
      for name in try cli.names(in: "repo/index") {
        try FileManager.default.removeItem(atPath: "\(cli.directory.string)/repo/index/\(name)")
      }
    }
    let outcome = try unread(command + " --json --verbose", slow: slow)
    if command == "repair index" { _ = try cli.succeed("repair index --repo repo") }
    try expectEnd(outcome)
  }

  /// A program that runs with SIGPIPE ignored reports the error instead.
  @Test func ignoredSignalIsAnError() throws {
    let text = """
      trap '' PIPE
      mkfifo out
      exec 3<>out 4>out 3>&-
      "$0" dump latest:folders/tree/0 --repo repo >&4
      exit $?
      """
    // The test runner resets signals; a shell passes on an ignored one.
    let outcome = try cli.run([], under: ["bash", "-c", text])
    #expect(outcome.code == 1, "\(outcome)")
    #expect(outcome.errors.contains("cannot write 'standard output'"), "\(outcome.errors)")
    #expect(try cli.names(in: "repo/leases").isEmpty)
  }
}
