import SystemIO
import TestSupport
import Testing

/// Paths of a device that no longer exist, as seen from the working directory.
struct DevicePathTests {
  private let cli: CommandLine

  /// Makes a directory, backs it up, and removes a part of it.
  init() throws {
    cli = try CommandLine(inMemory: true)
    try cli.directory.write("text", at: "tree/folder/note")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.directory.removeTree("tree/folder")
  }

  /// A directory has no apps: the error shows how to write a path in it.
  @Test func pathInAPlainDirectoryIsExplained() throws {
    let outcome = try cli.run("explain --layout folder --root tree note")
    let hint = "write it as 'folders/tree/note'"
    #expect(outcome.code == 1 && outcome.errors.contains(hint), "\(outcome.errors)")
    #expect(try !cli.succeed("explain --layout folder --root tree folders/tree/note").isEmpty)
  }

  @Test(arguments: ["tree/folder/note", "./tree/folder/note", "home/../tree/./folder/note"])
  func lostPathIsFoundInSnapshots(path: String) throws {
    #expect(try cli.succeed("dump latest:\(path) --repo repo") == "text")
    #expect(try cli.succeed("versions \(path) --repo repo").split(separator: "\n").count == 2)
  }

  @Test(arguments: ["tree/folder/note", "./tree/folder/note", "./home/../tree/./folder/note"])
  func lostPathIsExplained(path: String) throws {
    let text = try cli.succeed("explain \(path) --layout folder --root tree")
    #expect(text.hasPrefix("folders/tree/folder/note: does not exist"), "\(text)")
  }

  /// Logical paths come first, and other paths are not in the device.
  @Test func otherPathsAreErrors() throws {
    for path in ["./home/note", "../tree/folder/note", "nobody/note"] {
      let outcome = try cli.run("explain \(path) --layout folder --root tree")
      #expect(outcome.code == 1, "\(path): \(outcome.output)")
      let query = try cli.run("ls latest:\(path) --repo repo")
      #expect(query.code == 1, "\(path): \(query.output)")
    }
  }
}
