import SystemIO
import TestSupport
import Testing

/// An app's name in `versions`, which each snapshot resolves by itself.
struct VersionsTests {
  /// An ambiguous name is reported as such, not as a missing path.
  @Test func ambiguousAppNameIsReported() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("x", at: "home/.var/app/org.example.editor/data/notes")
    _ = try cli.succeed("init repo --plain --no-default")
    let backup = "backup --root home/.var/app --repo repo --quiet"
    try cli.directory.write("y", at: "home/.var/app/com.another.editor/data/notes")
    _ = try cli.succeed(backup)
    let unclear = "'editor' is ambiguous: it matches several apps: 'com.another.editor', "
    let none = try cli.run("versions editor/data/notes --repo repo")
    #expect(none.code == 1 && none.output.isEmpty, "\(none.output)")
    #expect(none.errors.contains("error: \(unclear)"), "\(none.errors)")
    #expect(none.errors.contains("give the full identifier"), "\(none.errors)")
    // If another snapshot has the app, the skipped snapshots are reported as well.
    try cli.directory.directory.directory("home/.var/app").removeTree("com.another.editor")
    _ = try cli.succeed(backup)
    let some = try cli.run("versions editor/data/notes --repo repo")
    #expect(some.code == 0 && !some.output.isEmpty, "\(some.errors)")
    #expect(
      some.errors.contains("warning: not all snapshots were searched: \(unclear)"),
      "\(some.errors)")
    // An app that is in no snapshot is still not an error in the name.
    let lacking = try cli.run("versions reader/notes --repo repo")
    #expect(lacking.code == 1 && lacking.errors.contains("no snapshot has it"))
    let whole = try cli.run("versions org.example.editor/data/notes --repo repo")
    #expect(whole.code == 0 && whole.errors.isEmpty, "\(whole.errors)")
  }
}
