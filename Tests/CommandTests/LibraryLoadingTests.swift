import SystemIO
import TestSupport
import Testing

/// The shared libraries that are loaded when a command needs them (Sources/CLoader).
struct LibraryLoadingTests {
  private let cli: CommandLine
  /// The files of these libraries, with their Debian packages.
  private static let libraries = [
    "libarchive.so.13": "libarchive13", "libbz2.so.1": "libbz2-1.0", "libcrypto.so.3": "libssl3",
    "libcurl.so.4": "libcurl4", "libfuse3.so.3": "libfuse3-3", "liblzma.so.5": "liblzma5",
    "libsqlite3.so.0": "libsqlite3-0",
  ]

  /// Makes a snapshot and archives.
  init() throws {
    cli = try CommandLine()
    try cli.directory.write("content", at: "tree/file")
    for (name, option) in [("tree.tar", "-cf"), ("tree.tbz", "-cjf"), ("tree.txz", "-cJf")] {
      let made = try Program.run("tar", [option, name, "tree"], in: cli.directory.url)
      try #require(made.code == 0)
    }
    _ = try Directory.make(path: cli.directory.path("view"))
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
  }

  /// Runs a command that finds invalid files in place of some libraries.
  private func run(
    _ line: String, without names: some Sequence<String>, environment: [String: String] = [:]
  ) throws -> Program.Outcome {
    for name in names {
      try cli.directory.write("no library", at: ByteString("lacking/\(name)"))
    }
    let path = ["LD_LIBRARY_PATH": cli.directory.string + "/lacking"]
    return try cli.run(
      line.split(separator: " ").map(String.init), environment: path.merging(environment) { $1 })
  }

  @Test(arguments: [
    "--version", "help backup", "snapshots --repo repo", "ls latest --repo repo --recursive",
    "find file --repo repo", "restore latest --to restored --repo repo", "check --repo repo",
    "classify --layout folder --root tree", "forget --keep-last 1 --repo repo",
  ])
  func commandsLoadOnlyTheLibrariesThatTheyNeed(_ line: String) throws {
    let outcome = try run(line, without: Self.libraries.keys)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(!outcome.output.isEmpty || line.hasPrefix("restore"))
  }

  @Test(arguments: [
    ("libarchive.so.13", "import tar tree.tar --repo repo"),
    ("libbz2.so.1", "import tar tree.tbz --repo repo"),
    ("liblzma.so.5", "import tar tree.txz --repo repo"),
    ("libcrypto.so.3", "init locked --passphrase-file tree/file --no-default"),
    ("libcrypto.so.3", "export itunes backup --repo repo"),
    ("libsqlite3.so.0", "export itunes backup --repo repo"),
    ("libfuse3.so.3", "mount view --repo repo"),
  ])
  func aMissingLibraryIsNamedWithItsPackage(_ library: String, _ line: String) throws {
    let outcome = try run(line, without: [library])
    #expect(outcome.code == 1)
    let package = try #require(Self.libraries[library])
    #expect(
      outcome.errors.contains("sandboxctl: error: cannot load the library \(library): "),
      "\(outcome.errors)")
    #expect(outcome.errors.hasSuffix("install it again; Debian's package is \(package)\n"))
  }

  /// A repository without its last file could neither be used nor created again.
  @Test func nothingIsCreatedWithoutALibrary() throws {
    let line = "init locked --passphrase-file tree/file --no-default"
    #expect(try run(line, without: ["libcrypto.so.3"]).code == 1)
    _ = try cli.succeed(line)
    _ = try cli.succeed("check --repo locked --passphrase-file tree/file")
  }

  @Test func aMissingLibraryForRequestsIsAnErrorOfTheStore() throws {
    let outcome = try run(
      "snapshots --repo s3://bucket/place", without: ["libcurl.so.4"],
      environment: ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"])
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("libcurl cannot be used: "), "\(outcome.errors)")
  }
}
