import ArchiveStore
import Codecs
import DeviceScan
import SystemIO
import TestSupport
import Testing

@testable import Backup

@Suite(.spreadScans) struct StateRulesTests {
  private static let start = Timestamp(seconds: 1000)

  private func status(
    _ kind: FileKind = .file, modified: Double, changed: Double, size: UInt64 = 3
  ) -> FileStatus {
    FileStatus(
      kind, identity: FileIdentity(device: 1, inode: 2), size: size, modified: Self.time(modified),
      changed: Self.time(changed))
  }

  private static func time(_ seconds: Double) -> Timestamp {
    Timestamp(
      seconds: Int64(seconds.rounded(.down)),
      nanoseconds: UInt32((seconds - seconds.rounded(.down)) * 1_000_000_000))
  }

  @Test(arguments: [
    // modified, changed, read at, stable
    (900.0, 900.0, 1000.0, true), (900, 997.9, 1000, true), (900, 998, 1000, false),
    (900, 998.1, 1000, false), (900, 1001, 1002, false), (941, 941, 1001, true),
    (941, 941, 1000.5, false), (999, 900, 2000, false), (997, 997, 1000, false),
    (997, 997, 1057, true), (5000, 900, 1000, false), (-50, -50, 1000, true),
  ])
  func aFileIsStableIfItWasUnchangedLongEnough(
    _ modified: Double, _ changed: Double, _ read: Double, _ expected: Bool
  ) {
    let status = status(modified: modified, changed: changed)
    let clock = RunClock(start: Self.start)
    #expect(
      ChangeRules.isStable(status, readAt: Self.time(read), in: clock) == expected,
      "\(modified) \(changed) \(read)")
  }

  @Test func onlyFilesNeedTheDelayOfMappings() {
    let clock = RunClock(start: Self.start)
    for kind in [FileKind.symlink, .directory, .fifo] {
      let young = status(kind, modified: 997, changed: 997)
      #expect(ChangeRules.isStable(young, readAt: Self.start, in: clock))
      let racy = status(kind, modified: 998.5, changed: 998.5)
      #expect(!ChangeRules.isStable(racy, readAt: Self.start, in: clock))
    }
  }

  @Test func anotherMachinesClockMayDifferByTenMinutes() {
    let clock = RunClock(start: Self.start, times: .remote)
    let read = Self.time(1000)
    #expect(
      ChangeRules.isStable(status(modified: 399, changed: 399), readAt: read, in: clock))
    #expect(
      !ChangeRules.isStable(status(modified: 401, changed: 401), readAt: read, in: clock))
  }

  /// On a file system in memory, a store through a mapping updates no times. The names in a
  /// directory cannot change in that way.
  @Test func noFileInMemoryIsStable() {
    let clock = RunClock(start: Self.start, times: .loose)
    let read = Self.time(1000)
    #expect(!ChangeRules.isStable(status(modified: 1, changed: 1), readAt: read, in: clock))
    let directory = status(.directory, modified: 1, changed: 1)
    #expect(ChangeRules.isStable(directory, readAt: read, in: clock))
  }

  @Test func withoutAWriterARecentFileIsStable() {
    let young = status(modified: 995, changed: 995)
    let read = Self.time(1001)
    for (times, isStable) in [(VolumeTimes.exact, true), (.remote, false), (.loose, false)] {
      let clock = RunClock(start: Self.time(1000), times: times)
      #expect(!ChangeRules.isStable(young, readAt: read, in: clock))
      #expect(
        ChangeRules.isStable(young, readAt: read, in: clock, hadNoWriter: true) == isStable)
    }
    let clock = RunClock(start: Self.time(996))
    #expect(!ChangeRules.isStable(young, readAt: read, in: clock, hadNoWriter: true))
  }

  @Test func theLeastPreciseVolumeDecides() {
    let clock = RunClock(start: Self.start)
    #expect(clock.reading([.exact, .exact]) == clock && clock.reading([]) == clock)
    #expect(clock.reading([.exact, .remote]) == RunClock(start: Self.start, times: .remote))
    #expect(clock.reading([.remote, .loose]) == RunClock(start: Self.start, times: .loose))
  }

  /// A single call that writes much data updates the times at its beginning, and may take this
  /// long.
  @Test func aLargeFileNeedsALongerDelay() {
    let clock = RunClock(start: Self.start, mappingDelay: 60)
    let read = Self.time(1000)
    for (size, seconds) in [(UInt64(960) << 20, 60.0), (1920 << 20, 120), (1 << 50, 128)] {
      for (age, isOld) in [(seconds - 1, false), (seconds + 1, true)] {
        let status = status(modified: 1000 - age, changed: 900, size: size)
        #expect(ChangeRules.isStable(status, readAt: read, in: clock) == isOld, "\(size) \(age)")
      }
    }
  }

  @Test func theClockIsThatOfTheFileSystem() throws {
    let before = Host.now()
    let state = try StateFixture().open()
    #expect(before.since(state.clock.start) < 1 && state.clock.start <= Host.now())
  }

  @Test func eachFieldThatDiffersIsAChange() throws {
    let fixture = try StateFixture()
    let known = try Self.known(fixture, StateFixture.status(5), isStable: true)
    #expect(ChangeRules.isUnchanged(known, StateFixture.status(5)))
    let same = StateFixture.status(5)
    func changed(
      kind: FileKind = .file, inode: UInt64? = nil, size: UInt64? = nil,
      modified: Timestamp? = nil, changed: Timestamp? = nil
    ) -> FileStatus {
      FileStatus(
        kind, identity: FileIdentity(device: 1, inode: inode ?? same.identity.inode),
        size: size ?? same.size, modified: modified ?? same.modified,
        changed: changed ?? same.changed)
    }
    #expect(ChangeRules.isUnchanged(known, changed()))
    var later = same.modified
    later.nanoseconds += 1
    let others = [
      changed(kind: .symlink), changed(inode: 1), changed(size: 6), changed(modified: later),
      changed(changed: later.nanoseconds == same.changed.nanoseconds ? same.modified : later),
    ]
    for other in others { #expect(!ChangeRules.isUnchanged(known, other), "\(other)") }
    let racy = try Self.known(try StateFixture(), StateFixture.status(5), isStable: false)
    #expect(!ChangeRules.isUnchanged(racy, StateFixture.status(5)))
  }

  @Test func theSizeOfADirectoryIsIgnored() throws {
    let known = try Self.known(
      try StateFixture(), StateFixture.status(5, .directory), isStable: true)
    let same = StateFixture.status(5, .directory)
    let grown = FileStatus(
      .directory, identity: same.identity, size: 4096, modified: same.modified,
      changed: same.changed)
    #expect(ChangeRules.isUnchanged(known, grown))
  }

  private static func known(
    _ fixture: StateFixture, _ status: FileStatus, isStable: Bool
  ) throws -> KnownEntry {
    do {
      let state = try fixture.open()
      var record = state.makeRecord()
      ByteString("a").withSpan {
        record.add($0, status, isStable: isStable, encoded: nil)
      }
      let location = state.write(record, tree: nil)
      try state.finish(
        [try StateFixture.container("c", location)], snapshot: StateFixture.snapshot, packs: [])
    }
    let state = try fixture.open()
    var directory = state.directory(state.containers[0].entry, key: DirectoryKey(container: "c"))
    let found = directory.find("a", status)
    return try #require(found)
  }

  @Test func listsAreTrustedOnlyIfAllConditionsHold() {
    for bits in 0..<8 {
      let trust = ChangeRules.trust(
        snapshotIsHeld: bits & 1 != 0, canRelyOnLists: bits & 2 != 0, arePacksThere: bits & 4 != 0)
      #expect((trust == .asListed) == (bits == 7), "\(bits)")
    }
  }

  // MARK: - Looking up

  private static func digest(_ number: UInt8) -> Digest { Blake2b.hash([number]) }

  /// Checks which blobs of an entry are looked up: it counts as stored if all of them exist, and
  /// not if any is missing.
  private func expectNeeds(
    _ entry: TreeEntry, _ needed: [BlobID], lists: [Digest: [Piece]] = [:]
  ) {
    func isStored(without missing: BlobID?) -> Bool {
      ChangeRules.isStored(
        entry, contains: { needed.contains($0) && $0 != missing }, list: { id, _, _ in lists[id] })
    }
    #expect(isStored(without: nil))
    for missing in needed { #expect(!isStored(without: missing), "\(missing)") }
  }

  @Test func eachBlobOfAFileIsLookedUp() {
    let content = Content(
      size: 30, level: 0,
      pieces: [
        .blob(Self.digest(1), length: 10), .hole(length: 10), .blob(Self.digest(2), length: 10),
      ])
    let entry = TreeEntry(
      name: "a", node: .file(content),
      attributes: [
        Attribute(name: "user.a", value: .inline([1])),
        Attribute(name: "user.b", value: .blob(Self.digest(3), length: 600)),
      ])
    expectNeeds(entry, [1, 2, 3].map { BlobID(kind: .data, digest: Self.digest($0)) })
    expectNeeds(TreeEntry(name: "l", node: .symlink(target: "a")), [])
    expectNeeds(TreeEntry(name: "e", node: .file(.empty)), [])
  }

  @Test func blobsOfListsAreLookedUp() {
    let content = Content(size: 40, level: 2, pieces: [.blob(Self.digest(1), length: 40)])
    let lists: [Digest: [Piece]] = [
      Self.digest(1): [.blob(Self.digest(2), length: 20), .blob(Self.digest(3), length: 20)],
      Self.digest(2): [.blob(Self.digest(4), length: 20)],
      Self.digest(3): [.blob(Self.digest(5), length: 10), .blob(Self.digest(6), length: 10)],
    ]
    let entry = TreeEntry(name: "a", node: .file(content))
    expectNeeds(
      entry,
      [1, 2, 3].map { BlobID(kind: .list, digest: Self.digest($0)) }
        + [4, 5, 6].map { BlobID(kind: .data, digest: Self.digest($0)) },
      lists: lists)
    // A list that exists but cannot be read.
    #expect(!ChangeRules.isStored(entry, contains: { _ in true }, list: { _, _, _ in nil }))
  }

  @Test func aDirectoriesTreeIsNeverLookedUp() {
    let entry = TreeEntry(name: "a", node: .directory(StateFixture.tree(1)))
    #expect(!ChangeRules.isStored(entry, contains: { _ in true }, list: { _, _, _ in [] }))
  }
}
