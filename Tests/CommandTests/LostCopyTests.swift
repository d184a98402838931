import Foundation
import SystemIO
import TestSupport
import Testing

/// The host's copies of the index become unreadable while a command reads them: another program
/// truncates them, with the same effect as a bad sector.
struct LostCopyTests {
  /// The number of directories and of files in each: their list exceeds the buffers of the pipe and
  /// of the program.
  private static let (directories, files) = (300, 20)

  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    let name = String(repeating: "n", count: 150)
    for directory in 0..<Self.directories {
      for file in 0..<Self.files {
        try cli.directory.write([], at: ByteString("tree/\(directory)/\(name)-\(file)"))
      }
    }
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    // The copies are created and verified.
    _ = try cli.succeed("ls latest --recursive --repo repo")
  }

  /// Lists the snapshot into a full pipe that nobody reads, so that the command cannot end. When it
  /// has mapped a copy, all copies are truncated; then the pipe is read.
  private func listing(_ options: String) throws -> Program.Outcome {
    let text = """
      mkfifo out
      exec 3<>out
      dd if=/dev/zero of=out bs=4096 oflag=nonblock status=none 2> /dev/null
      "$0" ls latest --recursive --repo repo \(options) > out & P=$!
      until grep -qs '[.]index$' /proc/$P/maps; do kill -0 $P || break; sleep 0.01; done
      find home/.cache/sandboxctl -name '*.index' -exec truncate -s 0 {} +
      cat <&3 > /dev/null & C=$!
      wait $P; CODE=$?
      kill $C
      exit $CODE
      """
    return try cli.run([], under: ["bash", "-c", text])
  }

  @Test(arguments: ["", "--long"]) func truncatedCopyEndsTheCommandWithAnError(
    _ options: String
  ) throws {
    let outcome = try listing(options)
    #expect(outcome.code == 1, "\(outcome.errors)")
    let cache = cli.directory.string + "/home/.cache/sandboxctl"
    #expect(
      outcome.errors
        == """
        sandboxctl: error: cannot read a mapped file: a copy of the index in '\(cache)', or the \
        temporary file in /var/tmp
        sandboxctl: hint: check the disks of both; the copies of the index can be deleted and are then \
        rebuilt; 'sandboxctl recover' finishes an interrupted operation

        """)
    // The repository is unchanged, and the copies are created again.
    let lines = try cli.succeed("ls latest --recursive --repo repo").split(separator: "\n")
    #expect(lines.count > Self.directories * Self.files)
    _ = try cli.succeed("check --read-data --repo repo")
  }
}
