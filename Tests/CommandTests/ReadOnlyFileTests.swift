import SystemIO
import TestSupport
import Testing

/// Files and directories that their owner may not write are restored with all metadata.
@Suite(.enabled(if: Host.userID == 0)) struct ReadOnlyFileTests {
  /// A file of one blob, one of several, and a directory, each with a `user.*` attribute, restored
  /// by a user without privileges.
  @Test func attributesOfReadOnlyFilesAreRestored() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("small", at: "tree/small")
    try cli.directory.write([UInt8](repeating: 7, count: 20 << 20), at: "tree/large")
    try cli.directory.write("below", at: "tree/folder/below")
    let tree = try Directory.open(path: cli.directory.path("tree"))
    for name: ByteString in ["small", "large", "folder"] {
      try tree.attributes(of: name).set("user.note", to: Array("kept".utf8))
      try tree.setPermissions(name == "folder" ? 0o555 : 0o444, of: name)
    }
    defer { cli.open() }
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    #expect(try cli.runAsNobody("backup --layout folder --root tree --repo repo").code == 0)
    let line = "restore latest:folders/tree --to back --repo repo"
    let outcome = try cli.runAsNobody(line)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let back = try Directory.open(path: cli.directory.path("back"))
    for name: ByteString in ["small", "large", "folder"] {
      #expect(try back.attributes(of: name).value(of: "user.note") == Array("kept".utf8), "\(name)")
      #expect(try back.status(name).permissions == (name == "folder" ? 0o555 : 0o444), "\(name)")
    }
    // An existing read-only directory gets its missing attribute.
    try back.attributes(of: "folder").remove("user.note")
    #expect(try cli.runAsNobody("\(line) --overwrite if-changed").code == 0)
    #expect(try back.attributes(of: "folder").value(of: "user.note") == Array("kept".utf8))
    #expect(try back.status("folder").permissions == 0o555)
  }
}
