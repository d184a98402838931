import SystemIO
import TestSupport
import Testing

/// A fixture with a directory `tree`, which is backed up into repositories and restored from them.
protocol TreeFixture {
  var cli: CommandLine { get }

  /// Runs a command that must succeed and returns its output.
  func succeed(_ line: String) throws -> String
}

extension TreeFixture {
  /// Writes files of random bytes, named by their numbers, to the tree.
  func writeTree(files: Int, of size: Int = 90_000, seed: UInt64) throws {
    var random = Seeded(seed)
    for number in 0..<files {
      try cli.directory.write(random.bytes(size), at: ByteString("tree/\(number)"))
    }
  }

  func backUp(to repository: String = "repo", _ options: String = "") throws {
    _ = try succeed("backup --layout folder --root tree --repo \(repository) --quiet \(options)")
  }

  /// Expects the latest snapshot to restore the tree in its current state.
  func expectRestored(from repository: String = "repo", _ options: String = "") throws {
    _ = try succeed(
      "restore latest:folders/tree --to back --repo \(repository) --quiet \(options)")
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
    try cli.directory.directory.removeTree("back")
  }
}

extension CommandLine: TreeFixture {
  var cli: CommandLine { self }

  /// Makes a repository with a snapshot of two files, the first of which is damaged.
  static func withDamagedFile() throws -> CommandLine {
    let cli = try CommandLine()
    var random = Seeded(7)
    for name: ByteString in ["tree/a-first", "tree/b-second"] {
      try cli.directory.write(random.bytes(3_000_000), at: name)
    }
    _ = try cli.succeed("init repo --plain --no-default")
    try cli.succeedInOrder("backup --layout folder --root tree --repo repo --quiet")
    try cli.flip(byte: 1_000_000, of: try cli.largestPack())
    return cli
  }
}

extension KeyFixture: TreeFixture {}
