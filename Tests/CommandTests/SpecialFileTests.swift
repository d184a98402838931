import SystemIO
import TestSupport
import Testing

/// Special files as arguments: nobody writes to a FIFO, so a reader would wait forever.
struct SpecialFileTests {
  @Test func fifoAsAPolicyIsRefused() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.directory.createSpecial("pipe.yaml", kind: .fifo, permissions: 0o600)
    let outcome = try cli.run("policy lint pipe.yaml", under: ["timeout", "60"])
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("cannot open 'pipe.yaml': it is a pipe"), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: name a regular file"), "\(outcome.errors)")
  }

  @Test func fifoAsTheConfigurationIsRefused() throws {
    let cli = try CommandLine(inMemory: true)
    let directory = try Directory.make(path: cli.directory.path("home/.config/sandboxctl"))
    try directory.createSpecial("config.yaml", kind: .fifo, permissions: 0o600)
    let outcome = try cli.run("apps", under: ["timeout", "60"])
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("config.yaml': it is a pipe"), "\(outcome.errors)")
  }

  /// A path of 4,000 bytes does not fill the screen.
  @Test func longPathIsAbbreviated() throws {
    let cli = try CommandLine(inMemory: true)
    let path = String(repeating: "directory/", count: 390) + "end"
    let outcome = try cli.run(["policy", "lint", path])
    #expect(outcome.code == 1)
    #expect(outcome.errors.utf8.count < 700, "\(outcome.errors)")
    #expect(outcome.errors.contains("'directory/") && outcome.errors.contains("directory/end'"))
    #expect(outcome.errors.contains("…"))
  }
}
