import SystemIO
import TestSupport
import Testing

/// A mirror that is gone, as if its disk were not mounted.
struct MirrorRecordTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("text", at: "tree/file")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
  }

  private static let mirror = "mirror --to disk/mirror --repo repo"

  /// Nothing is copied to the place of a missing mirror, which a dry run also reports.
  @Test(arguments: [false, true]) func aMirrorThatIsGoneIsNotMadeAgain(isEmpty: Bool) throws {
    _ = try cli.succeed(Self.mirror)
    _ = try cli.succeed(Self.mirror)
    try cli.directory.directory.removeTree("disk/mirror")
    if isEmpty { _ = try Directory.make(path: cli.directory.path("disk/mirror")) }
    for line in [Self.mirror, Self.mirror + " --dry-run", Self.mirror + " --quiet"] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 10, "\(outcome)")
      #expect(outcome.errors.contains("the mirror that this host made there is gone"))
      #expect(outcome.errors.contains("hint: mount its disk; '--allow-new'"), "\(outcome.errors)")
    }
    #expect(try cli.names(in: "disk") == (isEmpty ? ["mirror"] : []))
    if isEmpty { #expect(try cli.names(in: "disk/mirror").isEmpty) }
    #expect(try cli.succeed(Self.mirror + " --allow-new").contains("copied 1 snapshot"))
    #expect(try cli.succeed(Self.mirror).contains("the mirror is up to date"))
    #expect(try cli.snapshots("disk/mirror") == cli.snapshots())
  }

  /// A place in which this host has made no mirror may be empty, and a dry run makes none.
  @Test func aFirstMirrorIsMade() throws {
    #expect(try cli.succeed(Self.mirror + " --dry-run").contains("would copy 1 snapshot"))
    #expect(try cli.succeed(Self.mirror + " --dry-run").contains("would copy 1 snapshot"))
    _ = try Directory.make(path: cli.directory.path("disk/mirror"))
    #expect(try cli.succeed(Self.mirror).contains("copied 1 snapshot"))
    #expect(try cli.succeed("mirror --to disk/other --repo repo").contains("copied 1 snapshot"))
  }
}
