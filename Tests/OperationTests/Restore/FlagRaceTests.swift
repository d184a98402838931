import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Entries with flags that another process exchanges while a restore puts them in place, as the
/// user of a device can do while root restores into it.
@Suite(.spreadScans) struct FlagRaceTests {
  private static let noDump: UInt32 = 0x40

  /// Removes the restored entry `into/<name>` once it is in place, and puts another one there.
  private struct Exchange: Sendable {
    let directory: ByteString
    let name: ByteString
    let replacement: ByteString

    /// Returns whether the restored entry was there.
    func run() -> Bool {
      do {
        let into = try Directory.open(path: directory.appending("into"))
        let all = try Directory.open(path: directory)
        guard let status = try into.statusIfPresent(name) else { return false }
        try into.removeTree(name)
        if status.kind == .directory {
          try all.rename(replacement, to: name, in: into)
        } else {
          try into.createHardLink(name, to: replacement, in: all)
        }
        return true
      } catch { return false }
    }
  }

  /// The exchange happens before each call that opens a file or directory in turn.
  @Test(arguments: [("file", "victim"), ("folder", "other")] as [(ByteString, ByteString)])
  func flagsOfOtherFilesAreNotChanged(_ name: ByteString, _ victim: ByteString) throws {
    let fixture = try Fixture()
    try fixture.directory.write("text", at: "tree/file")
    try fixture.directory.write("text", at: "tree/folder/in it")
    let tree = try fixture.directory.directory.directory("tree")
    do {
      try tree.file("file").setFlags(Self.noDump)
      try tree.directory("folder").setFlags(Self.noDump)
    } catch { return print("skipped: flags: \(error)") }
    let report = try fixture.backup()
    var (call, exchanged, refused) = (0, 0, 0)
    while call < 1000 {
      call += 1
      for old: ByteString in ["into", victim] {
        if try fixture.directory.directory.statusIfPresent(old) != nil {
          try fixture.directory.directory.removeTree(old)
        }
      }
      try fixture.directory.write("mine", at: "into/mine")
      try fixture.directory.write(
        "root's", at: victim == "other" ? "other/in it" : victim)
      let identity = try fixture.directory.directory.status(victim).identity
      let exchange = Exchange(directory: fixture.directory.path, name: name, replacement: victim)
      let done = Mutex(false)
      let plan = Faults.Plan(before: [.open], at: call) {
        let isDone = exchange.run()
        done.withLock { $0 = isDone }
      }
      let outcome = try Faults.inject(plan) { try fixture.merge(report, into: "into", .always) }
      if done.withLock({ $0 }) {
        exchanged += 1
        if !outcome.isComplete { refused += 1 }
        let into = try fixture.directory.directory.directory("into")
        let found = try into.status(name)
        #expect(found.identity == identity, "call \(call)")
        let flags =
          found.kind == .directory ? try into.directory(name).flags() : try into.file(name).flags()
        #expect((flags ?? 0) & Self.noDump == 0, "call \(call)")
      }
      if !plan.hasFired { break }
    }
    #expect(call < 1000 && exchanged > 1 && refused > 0, "\(call), \(exchanged), \(refused)")
  }
}
