import SystemIO
import TestSupport
import Testing

/// Writes beyond the limit of file sizes (`ulimit -f`), for which the system sends a signal.
struct SizeLimitTests {
  private static let limited = ["bash", "-c", "ulimit -c 0; ulimit -f 100; exec \"$0\" \"$@\""]

  @Test func writesBeyondTheLimitFailAndLeaveNothing() throws {
    let cli = try CommandLine()
    var random = Seeded(11)
    try cli.directory.write(random.bytes(300_000), at: "tree/large")
    try cli.directory.write("small", at: "tree/small")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    let restored = try cli.run(
      "restore latest:folders/tree --to back --repo repo", under: Self.limited)
    #expect(restored.code == 3, "\(restored)")
    #expect(restored.errors.contains("large: it is larger than"), "\(restored.errors)")
    #expect(try cli.names(in: "back") == ["small"])
    try cli.directory.write("mine", at: "out/mine")
    let exported = try cli.run("export tar latest out/a.tar --repo repo", under: Self.limited)
    #expect(exported.code == 1, "\(exported)")
    #expect(exported.errors.contains("ulimit -f"), "\(exported.errors)")
    #expect(try cli.names(in: "out") == ["mine"])
  }
}
