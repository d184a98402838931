import Foundation
import SystemIO
import TestSupport
import Testing

/// `sandboxctl backup` without options: the user's devices and default repository, from an empty
/// home directory.
struct DefaultsTests {
  private let cli: CommandLine

  init() throws { cli = try CommandLine() }

  private static let repository = "home/.local/share/sandboxctl/repository"
  private static let note = "note: this repository is on the same disk as the data; "

  private func makeApps() throws {
    let apps: ByteString = "home/.var/app"
    for (path, size) in [
      ("org.example.Browser/data/bookmarks", 300), ("org.example.Browser/cache/pages", 90_000),
      ("org.example.Browser/data/Trash/files/old", 2_000),
      ("org.example.Games/config/settings", 40),
      ("org.example.Games/data/Steam/steamapps/common/game", 2_000_000),
    ] as [(ByteString, Int)] {
      try cli.directory.write([UInt8](repeating: 7, count: size), at: apps.appending(path))
    }
    for app: ByteString in ["org.example.Browser", "org.example.Games"] {
      for directory: ByteString in ["data", "config", "cache"] {
        _ = try Directory.make(path: cli.directory.path(apps).appending(app).appending(directory))
      }
    }
  }

  @Test func withoutADeviceNothingIsCreated() throws {
    let outcome = try cli.run("backup")
    #expect(outcome.code == 1)
    #expect(outcome.errors.contains("no device found"))
    for hint in ["--root DIR", "--layout folder", "sandboxctl sample DIR"] {
      #expect(outcome.errors.contains(hint), "\(outcome.errors)")
    }
    #expect(try cli.run("backup --root nowhere").code == 1)
    #expect(try cli.directory.directory.directory("home").names().isEmpty)
  }

  @Test func firstBackupCreatesTheDefaultRepository() throws {
    try makeApps()
    let first = try cli.run("backup")
    #expect(first.code == 0, "\(first.errors)")
    let lines = first.errors.split(separator: "\n")
    #expect(
      String(lines.first ?? "")
        == "note: created a repository in ~/.local/share/sandboxctl/repository; it is not encrypted, and "
        + "only this user can read it")
    #expect(lines.dropFirst().first?.hasPrefix(Self.note) == true, "\(first.errors)")
    let made = try Directory.open(path: cli.directory.path(ByteString(Self.repository)))
    #expect(try made.status().permissions == 0o700)
    #expect(try cli.succeed("ls latest:Browser/data").contains("bookmarks"))
    // Each run prints the note except with `--quiet`.
    #expect(try cli.run("backup").errors.hasPrefix(Self.note))
    let quiet = try cli.run("backup --quiet")
    #expect(quiet.code == 0 && quiet.output.isEmpty && quiet.errors.isEmpty)
    #expect(try cli.json("backup --json")["same_disk"] as? Bool == true)
    _ = try cli.succeed("init --accept-same-disk")
    #expect(try cli.run("backup").errors.isEmpty)
    #expect(try cli.snapshots(Self.repository).count == 5)
    _ = try cli.succeed("check --read-data")
  }

  @Test func chosenRepositoryIsNotCreated() throws {
    try makeApps()
    for line in ["backup --repo none", "backup --repo /nowhere/else"] {
      #expect(try cli.run(line).code == 10)
    }
    let environment = ["SANDBOXCTL_REPOSITORY": cli.directory.string + "/none"]
    #expect(try cli.run(["backup"], environment: environment).code == 10)
    // Other files at the default path are left alone.
    try cli.directory.write("mine", at: ByteString(Self.repository + "/letter"))
    let outcome = try cli.run("backup")
    #expect(outcome.code == 10)
    #expect(try cli.directory.read(ByteString(Self.repository + "/letter")) == Array("mine".utf8))
    #expect(
      try Directory.open(path: cli.directory.path(ByteString(Self.repository))).names() == [
        "letter"
      ])
  }

  /// The volume was full, or the first backup was killed: the next one completes the repository.
  @Test func repositoryThatWasNotCompletedIsCompleted() throws {
    try makeApps()
    let path = Self.repository
    _ = try cli.succeed("init \(path) --plain --no-default")
    let repository = try Directory.open(path: cli.directory.path(ByteString(path)))
    try repository.remove("repository.json")
    // Another program may be creating it.
    let other: ByteString = "00112233445566778899aabbccddeeff"
    try cli.directory.write("", at: ByteString(path + "/leases/\(other)/alive"))
    let held = try cli.run("backup")
    #expect(held.code == 10 && held.errors.contains("was not completed"), "\(held.errors)")
    try repository.directory("leases").removeTree(other)
    // The user may have wanted an encrypted repository.
    let readme = ByteString(path + "/README.txt")
    let text = try cli.directory.read(readme)
    try cli.directory.write("This directory is an encrypted repository.", at: readme)
    let encrypted = try cli.run("backup")
    #expect(encrypted.code == 10 && encrypted.errors.contains("was not completed"))
    try cli.directory.write(text, at: readme)
    // It may be the remains of a repository.
    for object in ["packs/00/pack", "condemned/pack"] {
      let remains = ByteString(path + "/" + object)
      try cli.directory.write("data", at: remains)
      let lost = try cli.run("backup")
      #expect(lost.code == 10 && lost.errors.contains("its packs exist"), "\(lost.errors)")
      try Directory.open(path: cli.directory.path(remains.parent)).remove("pack")
    }
    try repository.directory("packs").removeDirectory("00")
    try repository.remove("reserve")
    #expect(try cli.run("backup").code == 0)
    #expect(try cli.snapshots(path).count == 1)
    #expect(try cli.run("check --read-data").code == 0)
    #expect(try cli.names(in: ByteString(path + "/packs")).count == 256)
  }

  @Test func directoriesOfARepositoryThatWasNotCompletedAreUsed() throws {
    try makeApps()
    for name in ["condemned", "packs/07"] {
      _ = try Directory.make(path: cli.directory.path(ByteString(Self.repository + "/" + name)))
    }
    #expect(try cli.run("backup").code == 0)
    #expect(try cli.snapshots(Self.repository).count == 1)
  }

  @Test func repositoryOnAnotherDiskGivesNoReminder() throws {
    guard try Mount.isPermitted() else { return }
    try makeApps()
    let disk = try Mount(on: cli.directory.directory, at: cli.directory.path, "disk")
    defer { withExtendedLifetime(disk) {} }
    let outcome = try cli.run(
      ["backup"], environment: ["XDG_DATA_HOME": cli.directory.string + "/disk"])
    #expect(outcome.code == 0)
    let note = "note: created a repository in \(cli.directory.string)/disk/sandboxctl/repository; "
    #expect(outcome.errors.hasPrefix(note), "\(outcome.errors)")
    #expect(!outcome.errors.contains("same disk"), "\(outcome.errors)")
  }

  @Test func reportNamesTheLargestExclusion() throws {
    try makeApps()
    try Program.moveAside(cli, "home/.var/app/org.example.Games", to: "games")
    let lines = try cli.succeed("backup").split(separator: "\n").map(String.init)
    let user = Host.userName(Host.userID) ?? ""
    #expect(lines[0] == "device  \(user)@\(Host.name), flatpak, ~/.var/app: 2 apps")
    #expect(lines[1].contains(/^  app +keeps  excludes$/))
    #expect(lines[2].contains(/^  org\.example\.Browser  +300 B  87\.9 KiB cache, 2\.0 KiB more$/))
    let games =
      /^  org\.example\.Games +40 B  1\.9 MiB downloaded \(steamapps\/common\), on .*\/games$/
    #expect(lines[3].contains(games), "\(lines[3])")
    let summary = /^first backup: 340 B in 2 files -> .* stored in .* s   snapshot [0-9a-f]{8}$/
    #expect(lines[4].contains(summary), "\(lines[4])")
    #expect(
      lines.last
        == "next: sandboxctl restore latest --app browser --to restored     sandboxctl ls latest")
    // The suggested commands work.
    _ = try cli.succeed("restore latest --app browser --to restored")
    _ = try cli.succeed("ls latest")
    #expect(try cli.directory.read("restored/data/data/bookmarks").count == 300)
  }

  @Test func suggestedCommandsNameTheRepository() throws {
    try makeApps()
    _ = try cli.run(["init", "a disk", "--plain", "--no-default"])
    let output = try cli.run(["backup", "--repo", "a disk"]).output
    let advice = try #require(output.split(separator: "\n").last)
    #expect(advice.hasSuffix("sandboxctl ls latest --repo 'a disk'"), "\(output)")
  }
}

extension Program {
  /// Moves an entry and leaves a link to it at the old path.
  fileprivate static func moveAside(_ cli: CommandLine, _ path: String, to name: String) throws {
    let root = cli.directory.string
    let outcome = try run(
      "/bin/sh",
      ["-ec", "mv \"$0/\(path)\" \"$0/\(name)\"; ln -s \"$0/\(name)\" \"$0/\(path)\"", root])
    guard outcome.code == 0 else { throw Failure(description: outcome.errors) }
  }
}
