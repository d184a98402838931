import SystemIO
import TestSupport
import Testing

/// File systems with names of more than 255 bytes, which no snapshot can contain.
struct LongNameTests {
  @Test func nameThatIsTooLongLosesOnlyItsEntry() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try CommandLine()
    try cli.directory.write("kept", at: "source/file")
    let name = String(repeating: "n", count: 256)
    let directory = String(repeating: "d", count: 256)
    let image = try Mount(
      squashed: cli.directory.string + "/source",
      with: ["\(name) f 644 0 0 echo hello", "\(directory) d 755 0 0"], in: cli.directory, "image")
    _ = try cli.succeed("init repo --plain")
    let outcome = try cli.run("backup --layout folder --root image --repo repo")
    #expect(outcome.code == 3, "\(outcome.errors)")
    for lost in [name, directory] {
      #expect(
        outcome.errors.contains(
          "not in the snapshot: folders/image/\(lost) (\(cli.directory.string)/image/\(lost)): "
            + "no snapshot can hold it: its name has 256"),
        "\(outcome.errors)")
    }
    _ = try cli.succeed("restore latest:folders/image --to back --repo repo")
    #expect(try cli.names(in: "back") == ["file"])
    let shown = try cli.succeed("snapshots show latest --repo repo")
    #expect(shown.contains("its name has 256 bytes"))
    withExtendedLifetime(image) {}
  }
}
