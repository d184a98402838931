import Foundation
import SystemIO
import TestSupport
import Testing

/// Long commands that read a repository report their progress on request, and end on a signal.
struct ReadingSignalTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    var random = Seeded(9)
    try cli.directory.write(random.bytes(3 << 20), at: "tree/large")
    try cli.directory.write("a note", at: "tree/folder/note")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("another note", at: "tree/folder/note")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
  }

  /// Runs a command whose output is a full pipe that nobody reads, so that it blocks; requests its
  /// progress until it answers with `answer` (it is killed after 1,000 requests), and sends it
  /// `signal`. A shell makes background processes ignore SIGINT.
  private func stuck(
    _ command: String, answer: String, signal: String
  ) throws -> Program.Outcome {
    let text = """
      mkfifo out
      exec 3<>out
      dd if=/dev/zero of=out bs=4096 oflag=nonblock status=none 2> /dev/null
      env --default-signal=INT "$0" \(command) --repo repo > out 2> answers &
      P=$!
      # SIGUSR1 ends a program that does not catch it: that it does is bit 9.
      until read -r _ CAUGHT <<< "$(grep SigCgt /proc/$P/status)"; (( 0x$CAUGHT & 1 << 9 )); do
        kill -0 $P || break
        sleep 0.01
      done
      until grep -qE '\(answer)' answers; do
        kill -USR1 $P || break
        (( ++REQUESTS < 1000 )) || { kill -KILL $P; break; }
        sleep 0.05
      done
      kill -\(signal) $P
      wait $P
      CODE=$?
      cat answers >&2
      exit $CODE
      """
    return try cli.run([], under: ["bash", "-c", text])
  }

  private static let commands = [
    ("dump latest:folders/tree/large", "0 B of 3.0 MiB, 0 of 1 file: folders/tree/large$", "INT"),
    ("dump latest", ": 12 B of 3.0 MiB, 1 of 2 files.*: folders/tree/large$", "TERM"),
    ("dump latest:folders/tree", ": 12 B, 1 file.*: large$", "HUP"),
    ("find note", ": 2 files: folders/tree/folder$", "INT"),
    ("stats", #": ([0-9]+) of \1 blobs$"#, "TERM"),
    ("stats latest", ": 2 of 2 files: folders/tree/folder$", "HUP"),
    ("ls latest --recursive", ": 2 files: folders/tree/folder$", "INT"),
    ("diff latest~1 latest", ": 1 file: folders/tree/folder$", "TERM"),
    ("versions folders/tree/folder/note", ": 2 of 2 snapshots$", "HUP"),
  ]

  @Test(arguments: commands)
  func blockedCommandReportsProgressAndEnds(
    _ command: String, _ answer: String, _ signal: String
  ) throws {
    let outcome = try stuck(command, answer: answer, signal: signal)
    #expect(outcome.code == 130, "\(outcome.errors)")
    let lines = outcome.errors.split(separator: "\n")
    #expect(
      lines.suffix(2) == [
        "sandboxctl: error: cannot finish reading 'repo': it was interrupted",
        "sandboxctl: hint: run it again",
      ], "\(outcome.errors)")
    #expect(try cli.names(in: "repo/leases").isEmpty, "the lease of a dump is released")
  }

  @Test func interruptionIsJSONWithTheJSONOption() throws {
    let outcome = try stuck("find note --json", answer: "\"2 files: ", signal: "INT")
    #expect(outcome.code == 130, "\(outcome.errors)")
    let lines = try outcome.errors.split(separator: "\n").map(CommandLine.object)
    #expect(lines.last?["exit_status"] as? Int == 130)
    #expect(lines.dropLast().allSatisfy { $0["note"] is String }, "\(outcome.errors)")
  }

  // MARK: - On a terminal

  /// Returns the terminal output of a command line without the program's name. Its reads are slow,
  /// so that progress is drawn on any machine.
  private func terminal(_ line: String) throws -> String {
    let slow = "strace -f -o trace -e trace=pread64 -e inject=pread64:delay_enter=400000"
    let text = "stty cols 100 -onlcr; \(slow) $PROGRAM \(line)"
    let outcome = try cli.run(
      [], under: ["bash", "-c", "PROGRAM=$0 script -qec '\(text)' /dev/null"],
      environment: ["TERM": "xterm"])
    #expect(outcome.code == 0, "\(outcome.output)")
    return outcome.output
  }

  @Test(arguments: [
    "stats latest --repo repo", "find large --repo repo", "ls latest --recursive --repo repo",
  ])
  func progressLineIsErasedBeforeResults(_ line: String) throws {
    let output = try terminal(line)
    #expect(!ProgressLineTests.drawn(output).isEmpty)
    // Each drawn line was erased before a result was printed, and none is left.
    let erased = output.split(separator: "\r").map { $0.split(separator: "\u{1B}[K", maxSplits: 1) }
    let shown = erased.map { $0.last ?? "" }.filter { $0.hasSuffix("\n") }.joined()
    #expect(try shown == cli.succeed(line))
    #expect(output.hasSuffix("\n") || output.hasSuffix("\r\u{1B}[K"))
  }

  @Test func dumpIntoAFileShowsProgress() throws {
    let output = try terminal("dump latest:folders/tree/large --repo repo > dumped")
    #expect(ProgressLineTests.drawn(output).contains { $0.contains("of 3.0 MiB, 0 of 1 file") })
    #expect(output.hasSuffix("\r\u{1B}[K"))
    #expect(try cli.directory.read("dumped") == cli.directory.read("tree/large"))
  }

  /// The reader of the pipe may also use the terminal, and a progress line would be among the bytes
  /// of a file.
  @Test func progressIsNotMixedWithResults() throws {
    let dump = "dump latest:folders/tree/folder/note --repo repo"
    #expect(try terminal(dump) == "another note")
    #expect(try terminal(dump + " | cat") == "another note")
    #expect(try terminal(dump + " --quiet > dumped").isEmpty)
    let find = "find note --json --repo repo"
    #expect(try terminal(find) == cli.succeed(find))
  }
}
