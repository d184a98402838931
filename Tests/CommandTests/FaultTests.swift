import Foundation
import SystemIO
import TestSupport
import Testing

/// Failing system calls: strace makes the n-th call of a kind fail, for n = 1, 2, 3 … until the
/// program makes no more of them. `make test` tests a sample of the calls.
@Suite(.serialized, .enabled(if: Strace.isPermitted))
struct FaultTests {
  private static let backup = "backup --layout folder --root tree --repo repo --quiet"

  private static let caches: ByteString = "home/.cache/sandboxctl"

  private static func prepare() throws -> CommandLine {
    let cli = try CommandLine()
    try cli.directory.write("first", at: "tree/first")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(backup)
    var random = Seeded(11)
    try cli.directory.write(random.bytes(2_000_000), at: "tree/second")
    try cli.directory.write("third", at: "tree/folder/third")
    return cli
  }

  /// A disk that fails from the n-th call on, or a single unrecoverable failure: the error is
  /// reported, no snapshot appears, nothing unfinished is left, and the next backup succeeds. The
  /// host has no directory for copies of the index, whose writes may fail: see `WriterCacheTests`
  /// and `BackupFaultTests`.
  @Test(arguments: [
    Fault("write", "ENOSPC", .once, "no space"), Fault("write", "EIO", .once, "input/output"),
    Fault("fsync", "EIO", .fromThenOn, "input/output"),
    Fault("fsync", "ENOSPC", .fromThenOn, "no space"),
    Fault("renameat,renameat2", "EIO", .fromThenOn, "input/output"),
    Fault("mkdirat", "EACCES", .once, "permission denied"),
  ])
  func failedBackupLeavesNoSnapshot(_ fault: Fault) throws {
    let cli = try Self.prepare()
    for name in try cli.names(in: Self.caches) {
      let location = Self.caches.appending(name)
      try Directory.open(path: cli.directory.path(location)).removeTree("index")
      try cli.directory.write("no directory", at: location.appending("index"))
    }
    let before = try cli.snapshots()
    try fault.forEachCall { number, strace in
      let outcome = try cli.run(Self.backup, under: strace.command)
      guard try strace.didInject() else {
        #expect(outcome.code == 0, "\(outcome.errors)")
        return false
      }
      let what = "\(fault), call \(number)"
      // The snapshot has its name, and only its directory was not synced, which the error reports.
      if outcome.errors.contains("may not be durable") {
        #expect(outcome.code == 1, "\(what)")
        return false
      }
      if outcome.code == 0, try cli.snapshots().count > before.count {
        // After the snapshot only the index has to be merged, which can be postponed.
        #expect(number > 1, "\(what)")
        return false
      }
      #expect(outcome.code == 1, "\(what): \(outcome.code)")
      if try !strace.didInjectIntoMessage() {
        let errors = outcome.errors
        #expect(errors.hasPrefix("sandboxctl: error: cannot "), "\(what): \(errors)")
        #expect(errors.contains(fault.reason), "\(what): \(errors)")
        #expect(errors.contains("sandboxctl: hint: "), "\(what): \(errors)")
      }
      #expect(try cli.snapshots() == before, "\(what)")
      #expect(try cli.names(in: "repo/leases").isEmpty, "\(what)")
      return true
    }
    #expect(try cli.snapshots().count == before.count + 1)
    for pack in try cli.packs() { try Archive.check(pack) }
    _ = try cli.succeed("restore \(before[0]):folders/tree --to old --repo repo")
    #expect(try cli.names(in: "old") == ["first"])
    _ = try cli.succeed("restore latest:folders/tree --to new --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "new")
  }

  /// A fault injected into a message of the program is recognized, and not mistaken for one
  /// elsewhere.
  @Test(arguments: [("/missing", true), ("/", false)])
  func injectionsIntoMessagesAreFound(_ path: String, isMessage: Bool) throws {
    let strace = try Strace("write", "EIO", "1")
    _ = try Program.run("strace", strace.command.dropFirst() + ["ls", path])
    #expect(try strace.didInject())
    #expect(try strace.didInjectIntoMessage() == isMessage)
  }

  /// A single failed fsync has no effect: the data is written again.
  @Test func backupSurvivesOneFailedSync() throws {
    let cli = try Self.prepare()
    let fault = Fault("fsync", "EIO", .once, "input/output")
    try fault.forEachCall { number, strace in
      try cli.directory.write("new for \(number)", at: "tree/changing")
      let before = try cli.snapshots().count
      let outcome = try cli.run(Self.backup, under: strace.command)
      let made = try cli.snapshots().count - before
      #expect(made == (outcome.code == 0 ? 1 : 0), "call \(number): \(outcome.errors)")
      let isInjected = try strace.didInject()
      if !isInjected { #expect(outcome.code == 0) }
      return isInjected
    }
    _ = try cli.succeed("restore latest:folders/tree --to new --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "new")
    for pack in try cli.packs() { try Archive.check(pack) }
  }

  /// A snapshot that exists but whose name may not be durable is a failure: the error says that it
  /// exists, and the next run makes another one.
  @Test func snapshotThatIsNotDurableIsAFailure() throws {
    let cli = try Self.prepare()
    let before = try cli.snapshots().count
    let strace = try Strace("fsync", "EIO", "1+", on: [cli.directory.string + "/repo/snapshots"])
    let outcome = try cli.run(Self.backup, under: strace.command)
    #expect(try strace.didInject() && outcome.code == 1, "\(outcome.errors)")
    let made = try cli.snapshots()
    #expect(made.count == before + 1)
    let id = try #require(made.last).prefix(8)
    #expect(
      outcome.errors.hasPrefix(
        "sandboxctl: error: cannot guarantee the durability of 'snapshot \(id)': it was written "
          + "and is listed, but may not be durable: input/output"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: it may be lost after a power failure"))
    _ = try cli.succeed(Self.backup)
    #expect(try cli.snapshots().count == before + 2)
    #expect(try cli.names(in: "repo/leases").isEmpty)
    _ = try cli.succeed("restore \(id):folders/tree --to new --repo repo")
    try ChangeDetector.expectSame(cli.directory, "tree", "new")
  }

  /// A failed restore leaves neither a target nor temporary files; if only the last flush fails,
  /// the restore is complete.
  @Test(arguments: [
    Fault("pwrite64", "ENOSPC", .once, "no space"),
    Fault("renameat,renameat2", "EACCES", .once, "permission"),
    Fault("syncfs", "EIO", .once, "input/output"),
  ])
  func failedRestoreLeavesNothing(_ fault: Fault) throws {
    let cli = try Self.prepare()
    _ = try cli.succeed(Self.backup)
    let target = try Directory.make(path: cli.directory.path("target"))
    try fault.forEachCall { number, strace in
      let outcome = try cli.run(
        "restore latest:folders/tree --to target/back --repo repo --quiet", under: strace.command)
      guard try strace.didInject() else {
        #expect(outcome.code == 0, "\(outcome.errors)")
        return false
      }
      if fault.call == "pwrite64", number == 1, outcome.code == 0 {
        // The first call of the first thread writes the lock file, whose text is only informative.
        // That thread writes all files if the others find nothing left to do.
        try ChangeDetector.expectSame(cli.directory, "tree", "target/back")
        try target.removeTree("back")
        return true
      }
      #expect(outcome.code == 1, "\(fault), call \(number): \(outcome.errors)")
      #expect(outcome.errors.contains(fault.reason), "call \(number): \(outcome.errors)")
      if fault.call == "syncfs", try target.names() == ["back"] {
        try ChangeDetector.expectSame(cli.directory, "tree", "target/back")
        try target.removeTree("back")
      }
      #expect(try target.names().isEmpty, "\(fault), call \(number)")
      return true
    }
    try ChangeDetector.expectSame(cli.directory, "tree", "target/back")
  }

  /// A separate thread flushes restored data while it is written, from 64 MiB on; here it is 68
  /// MiB.
  @Test(arguments: [(1, 1), (136, 2)])
  func largeRestoreIsFlushedMeanwhile(files: Int, threads: Int) throws {
    let cli = try CommandLine()
    for number in 1...files {
      let bytes = [UInt8](repeating: UInt8(number), count: 512 << 10)
      try cli.directory.write(bytes, at: ByteString("tree/\(number)"))
    }
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed(Self.backup)
    let strace = try Strace(recording: "syncfs")
    let outcome = try cli.run(
      "restore latest:folders/tree --to back --repo repo", under: strace.command)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try strace.recorded().count { $0.number == 1 } == threads)
    try ChangeDetector.expectSame(cli.directory, "tree", "back")
  }

  /// A file on a bad sector is reported; everything else is stored.
  @Test func fileOnABadSectorIsSkipped() throws {
    let cli = try Self.prepare()
    let strace = try Strace(
      "pread64,read", "EIO", "1+", on: [cli.directory.string + "/tree/second"])
    let outcome = try cli.run(
      "backup --layout folder --root tree --repo repo", under: strace.command)
    #expect(try strace.didInject())
    #expect(outcome.code == 3)
    #expect(outcome.errors.contains("/tree/second): input/output error"), "\(outcome.errors)")
    _ = try cli.succeed("restore latest:folders/tree --to back --repo repo")
    #expect(try cli.names(in: "back") == ["first", "folder"])
  }
}
