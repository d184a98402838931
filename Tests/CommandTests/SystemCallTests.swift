import Foundation
import SystemIO
import TestSupport
import Testing

/// System calls that fail once, at their n-th occurrence: the built program does not crash, its
/// exit status reports the result, and nothing is left half done. `FaultTests` covers the calls
/// that write a repository; `BackupFaultTests` and `RestoreFaultTests` go through every single call
/// at the program's own interface to the kernel.
@Suite(.serialized, .enabled(if: Strace.isPermitted))
struct SystemCallTests {
  private static let backup = "backup --layout folder --root tree --repo repo --quiet"
  private static let merge =
    "restore latest:folders/tree --to into --repo repo --overwrite if-changed --delete --quiet"

  private static func prepare() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("first", at: "tree/first")
    try cli.directory.write("second", at: "tree/folder/second")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(backup)
    return cli
  }

  /// Returns the directories whose calls fail, and the files in them.
  private static func paths(_ cli: CommandLine, _ names: [String]) -> [String] {
    names.map { cli.directory.string + "/" + $0 }
  }

  @Test(arguments: [
    Fault("read,pread64", "EIO", .once, "input/output"),
    Fault("getdents64", "EIO", .once, "input/output"),
    Fault("flock", "ENOLCK", .once, "lock"), Fault("unlinkat", "EIO", .once, "input/output"),
    Fault("ftruncate", "EIO", .once, "input/output"),
  ])
  func backupSurvivesAFailedCall(_ fault: Fault) throws {
    let cli = try Self.prepare()
    let index = try #require(try cli.names(in: "repo/index").first)
    let paths =
      Self.paths(
        cli,
        [
          "tree", "tree/first", "tree/folder", "tree/folder/second", "repo/leases", "repo/index",
          "repo/index/\(index)", "repo/snapshots", "repo/condemned", "repo/packs",
          "repo/repository.json",
        ]) + [(try cli.largestPack() as NSString).deletingLastPathComponent]
    try cli.copy("repo", to: "pristine/repo")
    try cli.copy("home", to: "pristine/home")
    try fault.forEachCall(on: fault.isMadeByTheLoaderToo ? paths : []) { number, strace in
      // Created again each time: data of earlier runs would make the run longer.
      for name in ["repo", "home"] {
        try cli.directory.directory.removeTree(ByteString(name))
        try cli.copy("pristine/\(name)", to: name)
      }
      try cli.directory.write("for \(number)", at: "tree/first")
      let outcome = try cli.run(Self.backup, under: strace.command)
      let isInjected = try strace.didInject()
      let what = "\(fault), call \(number): \(outcome.code), \(outcome.errors)"
      // Unreadable parts of the repository are damage.
      let isFailure = outcome.code == 1 || outcome.code == 13
      #expect(isFailure || outcome.code == 0 || outcome.code == 3, "\(what)")
      if isFailure { #expect(outcome.errors.contains("error: cannot "), "\(what)") }
      if outcome.code != 0 { #expect(outcome.errors.contains(fault.reason), "\(what)") }
      let listed = try cli.snapshots()
      #expect(isFailure ? (1...2).contains(listed.count) : listed.count == 2, "\(what)")
      if outcome.code == 0 {
        _ = try cli.succeed("restore latest:folders/tree --to back --repo repo --quiet")
        #expect(try cli.records("back") == cli.records("tree"), "\(what)")
        try cli.directory.directory.removeTree("back")
      }
      let check = try cli.run("check --read-data --quiet --repo repo")
      #expect(check.code == 0, "\(what): \(check.output) \(check.errors)")
      return isInjected
    }
  }

  @Test(arguments: [
    Fault("getdents64", "EIO", .once, "input/output"),
    Fault("write,pwrite64", "ENOSPC", .once, "no space"),
    Fault("renameat,renameat2", "EIO", .once, "input/output"),
    Fault("mkdirat,unlinkat", "EIO", .once, "input/output"),
    Fault("fchmod,fchownat,utimensat,ftruncate", "EIO", .once, "input/output"),
    Fault("syncfs", "EIO", .once, "input/output"), Fault("flock", "ENOLCK", .once, "lock"),
  ])
  func restoreIntoADirectorySurvivesAFailedCall(_ fault: Fault) throws {
    let cli = try Self.prepare()
    let older = try cli.records("tree")
    try cli.copy("tree", to: "original")
    try cli.directory.write("other", at: "original/first")
    try cli.directory.write("mine", at: "original/folder/mine")
    let present = try cli.records("original")
    let paths = Self.paths(cli, ["into", "into/folder", "into/first", "into/folder/second"])
    try fault.forEachCall(on: fault.isMadeByTheLoaderToo ? paths : []) { number, strace in
      try cli.copy("original", to: "into")
      let outcome = try cli.run(Self.merge, under: strace.command)
      let isInjected = try strace.didInject()
      let what = "\(fault), call \(number): \(outcome.code), \(outcome.errors)"
      #expect([0, 1, 3].contains(outcome.code), "\(what)")
      if outcome.code != 0, try !strace.didInjectIntoMessage() {
        #expect(outcome.errors.contains(fault.reason), "\(what)")
      }
      for (path, entry) in try cli.records("into") where entry.kind == .file {
        if path.description.hasPrefix(".sandboxctl-restore-") { continue }
        let contents = [older[path]?.content, present[path]?.content].compactMap { $0 }
        #expect(contents.contains { $0 == entry.content }, "\(what): \(path)")
      }
      if outcome.code == 0 { #expect(try cli.records("into") == older, "\(what)") }
      _ = try cli.succeed(Self.merge)
      #expect(try cli.records("into") == older, "\(what)")
      try cli.directory.directory.removeTree("into")
      return isInjected
    }
  }

  /// A bad sector in a pack loses the files on it; all others are restored.
  @Test func unreadablePackLosesOnlyItsFiles() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("one", at: "tree/one")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(Self.backup)
    var random = Seeded(3)
    try cli.directory.write(random.bytes(100_000), at: "tree/two")
    _ = try cli.succeed(Self.backup)
    let strace = try Strace("pread64,read", "EIO", "1+", on: [try cli.largestPack()])
    let line = "restore latest:folders/tree --to back --repo repo"
    let outcome = try cli.run(line, under: strace.command)
    #expect(try strace.didInject() && outcome.code == 13, "\(outcome.errors)")
    #expect(
      outcome.errors.contains(/damaged: two: packs\/.*: input\/output error/), "\(outcome.errors)")
    #expect(try cli.directory.read("back/one") == Array("one".utf8))
    #expect(try cli.names(in: "back") == ["one"])
    let again = try Strace("pread64,read", "EIO", "1+", on: [try cli.largestPack()])
    let check = try cli.run("check --read-data --repo repo", under: again.command)
    #expect(try again.didInject() && check.code == 13, "\(check.errors)")
    #expect(check.output.contains("folders/tree/two"), "\(check.output)")
  }
}

extension Fault {
  /// Whether the loader makes such calls before the program starts, so that only those on named
  /// paths can be counted.
  fileprivate var isMadeByTheLoaderToo: Bool {
    ["getdents64", "read,pread64"].contains(call)
  }
}
