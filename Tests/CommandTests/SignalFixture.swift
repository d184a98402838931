import SystemIO
import TestSupport

/// A directory with 16 MB of content and an empty repository, for commands that get signals.
struct SignalFixture {
  let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    var random = Seeded(7)
    // Incompressible content.
    for number in 0..<32 {
      try cli.directory.write(
        random.bytes(500_000), at: ByteString("tree/folder \(number % 4)/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
  }

  private static let durable = "fsync,fdatasync,syncfs"
  private static let hasLease = #"[ -n "$(ls repo/leases)" ]"#
  static let readsPacks = "grep -qs packs/ trace"
  static let backup = "backup --layout folder --root tree --repo repo"

  /// Runs a command in the background of a shell that runs `script` as soon as `begun` holds, for a
  /// backup once it has its lease. `$P` is the command's process ID. Each of the `slow` calls,
  /// which make data durable, takes `seconds`, so that the script ends before the command on any
  /// machine. A shell makes background processes ignore SIGINT. Returns the outcome of the command.
  func signalled(
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
}
