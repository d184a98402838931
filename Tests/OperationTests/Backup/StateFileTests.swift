import ArchiveStore
import Codecs
import Glibc
import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Backup

@Suite(.spreadScans) struct StateFileTests {
  let fixture: StateFixture
  init() throws { fixture = try StateFixture() }

  private let root = DirectoryKey(container: "folders/tree")

  @Test func theNextRunReadsRecordedEntries() throws {
    let first = try fixture.open()
    #expect(first.containers.isEmpty && first.remarks.isEmpty)
    #expect(first.container("folders/tree") == nil)
    withExtendedLifetime(first) {}
    _ = consume first
    try fixture.writeSmall()
    let state = try fixture.open()
    let container = try #require(state.container("folders/tree"))
    #expect(container.snapshot == StateFixture.snapshot)
    #expect(container.entry.entry?.name == "root")
    var directory = state.directory(container.entry, key: root)
    #expect(directory.tree == StateFixture.tree(1) && directory.count == 4)
    for number: UInt64 in [0, 1, 2, 3, 4, 5] {
      let known = directory.find(StateFixture.name(number), StateFixture.status(number))
      #expect((known != nil) == (number % 2 == 0 && number < 5), "\(number)")
      guard let known else { continue }
      expectSame(known, number)
    }
    let sub = try directory.knownDirectory("sub")
    #expect(sub.kind == .directory && sub.directory != nil)
    var inner = state.directory(sub, key: root.directory("sub"))
    #expect(inner.tree == StateFixture.tree(0) && inner.count == 3)
    expectSame(try inner.known(11), 11)
  }

  private func expectSame(_ known: KnownEntry, _ number: UInt64) {
    let status = StateFixture.status(number)
    #expect(known.name == StateFixture.name(number) && known.kind == .file)
    #expect(known.inode == status.identity.inode && known.size == status.size)
    #expect(known.modified == status.modified && known.changed == status.changed)
    #expect(known.isStored && !known.isOfInterruptedRun && known.isStable)
    #expect(known.entry == StateFixture.entry(number))
    #expect(ChangeRules.isUnchanged(known, status))
  }

  @Test func aRunThatDoesNotFinishChangesNothing() throws {
    try fixture.writeSmall()
    let before = try fixture.bytes()
    do {
      let state = try fixture.open()
      _ = try StateFixture.record(state, 0..<50_000)
    }
    #expect(try fixture.bytes().prefix(before.count) == before[...])
    let state = try fixture.open()
    #expect(state.container("folders/tree")?.snapshot == StateFixture.snapshot)
    var directory = state.directory(state.containers[0].entry, key: root)
    _ = try directory.known(0)
  }

  @Test func anUnchangedDirectoryIsRecordedAsAReference() throws {
    do {
      let state = try fixture.open()
      let position = try StateFixture.record(state, 0..<3000)
      try state.finish(
        [try StateFixture.container("folders/tree", position)], snapshot: StateFixture.snapshot,
        packs: [])
    }
    let size = try fixture.bytes().count
    for run: UInt8 in 1...3 {
      let state = try fixture.open()
      let entry = state.containers[0].entry
      let directory = state.directory(entry, key: root)
      #expect(directory.pointer != nil && directory.count == 3000)
      try state.finish(
        [try StateFixture.container("folders/tree", directory.pointer)],
        snapshot: Blake2b.hash([run]),
        packs: [])
    }
    #expect(try fixture.bytes().count < size + 1000)
    let state = try fixture.open()
    #expect(state.containers[0].snapshot == Blake2b.hash([3]))
    var directory = state.directory(state.containers[0].entry, key: root)
    _ = try directory.known(2999)
  }

  @Test func unchangedEntriesAreCopied() throws {
    try fixture.writeSmall()
    do {
      let state = try fixture.open()
      var directory = state.directory(state.containers[0].entry, key: root)
      var record = state.makeRecord()
      record.reuse(try directory.known(0))
      let two = try StateFixture.entry(2).encoded()
      StateFixture.name(2).withSpan {
        record.add($0, StateFixture.status(22), isStable: false, encoded: two)
      }
      record.reuse(try directory.known(4))
      let sub = try directory.knownDirectory("sub")
      record.reuse(sub, record: try StateFixture.record(state, [90]))
      let position = state.write(record, tree: StateFixture.tree(8))
      try state.finish(
        [try StateFixture.container("folders/tree", position)], snapshot: StateFixture.snapshot,
        packs: [])
    }
    let state = try fixture.open()
    var directory = state.directory(state.containers[0].entry, key: root)
    expectSame(try directory.known(0), 0)
    let two = try directory.known(2)
    #expect(two.inode == 1022 && !two.isStable)
    expectSame(try directory.known(4), 4)
    let sub = try directory.knownDirectory("sub")
    #expect(sub.entry?.name == "sub")
    var inner = state.directory(sub, key: root.directory("sub"))
    expectSame(try inner.known(90), 90)
  }

  /// The list of packs that the containers of a run share is written once, also when the file is
  /// rewritten.
  @Test func containersShareTheirListOfPacks() throws {
    let common = Set((0..<60_000).map { Blake2b.hash(Array("\($0)".utf8)) })
    var sizes: [Int] = []
    // Each run writes a list of 480 kB; the file is rewritten when it has 4 MiB.
    for run: UInt8 in 0..<12 {
      let state = try fixture.open()
      let position = try StateFixture.record(state, 0..<3)
      let containers = try (10..<40).map { number in
        try StateFixture.container(ByteString("folders/\(number)"), position)
      }
      try state.finish(
        containers, snapshot: StateFixture.snapshot, packs: common.union([Blake2b.hash([run])]))
      sizes.append(try fixture.bytes().count)
    }
    #expect(zip(sizes, sizes.dropFirst()).contains { $1 < $0 })
    #expect(try #require(sizes.max()) < 8 << 20)
    let state = try fixture.open()
    #expect(state.containers.count == 30 && Set(state.containers.map(\.packs)).count == 1)
    let packs = ListedPacks(common.union([Blake2b.hash([11])]))
    #expect(state.arePacksThere(packs, for: state.containers[0]))
  }

  @Test func namesMayBeAnyBytes() throws {
    var random = Seeded.fresh()
    var names = Set((0..<300).map { _ in ByteString(random.fileName()) })
    names.insert(ByteString([UInt8](repeating: 0xff, count: 255)))
    let sorted = names.sorted()
    do {
      let state = try fixture.open()
      var record = state.makeRecord()
      for name in sorted {
        name.withSpan {
          record.add($0, StateFixture.status(1), isStable: true, encoded: nil)
        }
      }
      let position = state.write(record, tree: nil)
      try state.finish(
        [try StateFixture.container("a", position)], snapshot: StateFixture.snapshot, packs: [])
    }
    let state = try fixture.open()
    var directory = state.directory(state.containers[0].entry, key: DirectoryKey(container: "a"))
    #expect(directory.count == sorted.count && directory.tree == nil)
    for name in sorted {
      let known = directory.find(name, StateFixture.status(1))
      #expect(known?.name == name && known?.isStored == false && known?.entry == nil)
    }
  }

  @Test func aLargeDirectoryIsReadPageByPage() throws {
    do {
      let state = try fixture.open()
      let position = try StateFixture.record(state, 0..<10_000)
      try state.finish(
        [try StateFixture.container("a", position)], snapshot: StateFixture.snapshot, packs: [])
    }
    let state = try fixture.open()
    var directory = state.directory(state.containers[0].entry, key: DirectoryKey(container: "a"))
    #expect(directory.count == 10_000)
    for number in stride(from: UInt64(0), to: 10_000, by: 7) {
      let known = try directory.known(number)
      #expect(known.entry == StateFixture.entry(number))
    }
    let isLackingfolder = directory.lacks("zzz")
    #expect(isLackingfolder)
  }

  @Test func entriesOutOfOrderAreDropped() throws {
    do {
      let state = try fixture.open()
      let position = try StateFixture.record(state, [5, 3, 5, 6])
      try state.finish(
        [try StateFixture.container("a", position)], snapshot: StateFixture.snapshot, packs: [])
    }
    let state = try fixture.open()
    var directory = state.directory(state.containers[0].entry, key: DirectoryKey(container: "a"))
    #expect(directory.count == 2)
    let isLackingfolder = directory.lacks(StateFixture.name(3))
    #expect(isLackingfolder)
    _ = try directory.known(6)
  }

  /// A state file of an older version is not misread: the run works as if there were none, and
  /// writes a file of this version.
  @Test func aStateOfAnOlderVersionIsNotUsed() throws {
    try fixture.writeSmall()
    var bytes = try fixture.bytes()
    for position in [0, 4096] where bytes[position] != 0 {
      bytes[position + 8] = 1
      let sum = Blake2b.hash(Array(bytes[position..<(position + 504)])).bytes.prefix(8).reversed()
      bytes.replaceSubrange((position + 504)..<(position + 512), with: sum)
    }
    try fixture.replace(bytes)
    do {
      let state = try fixture.open()
      #expect(state.containers.isEmpty)
      #expect(state.remarks.count == 1 && state.remarks[0].contains("of another version"))
    }
    #expect(try fixture.bytes() == bytes, "the file stays until a run ends")
    do {
      let state = try fixture.open()
      let position = try StateFixture.record(state, [1])
      try state.finish(
        [try StateFixture.container("folders/tree", position)], snapshot: StateFixture.snapshot,
        packs: [])
    }
    let state = try fixture.open()
    #expect(state.remarks.isEmpty && state.containers.count == 1)
  }

  @Test func aPartialRunKeepsTheOtherContainers() throws {
    try fixture.writeSmall("apps/a/data")
    do {
      let state = try fixture.open()
      let position = try StateFixture.record(state, [50])
      try state.finish(
        [try StateFixture.container("apps/b/data", position)], snapshot: Blake2b.hash([50]),
        packs: [],
        keepingOthers: true)
    }
    do {
      let state = try fixture.open()
      #expect(state.containers.map(\.path) == ["apps/a/data", "apps/b/data"])
      #expect(state.containers.map(\.snapshot) == [StateFixture.snapshot, Blake2b.hash([50])])
      var directory = state.directory(
        state.containers[0].entry, key: DirectoryKey(container: "apps/a/data"))
      let known = try directory.known(2)
      #expect(known.entry == StateFixture.entry(2))
      let position = try StateFixture.record(state, [60])
      try state.finish(
        [try StateFixture.container("c", position)], snapshot: StateFixture.snapshot, packs: [])
    }
    // A complete run drops containers that no longer exist.
    #expect(try fixture.open().containers.map(\.path) == ["c"])
  }

  @Test func eachContainerRecordsThePacksOfItsRun() throws {
    let packs = Set((0..<40).map { Blake2b.hash([7, $0]) })
    let more = packs.union([Blake2b.hash([8])])
    func finish(_ path: ByteString, _ packs: Set<Digest>) throws {
      let state = try fixture.open()
      try state.finish(
        [try StateFixture.container(path, nil)], snapshot: StateFixture.snapshot, packs: packs,
        keepingOthers: true)
    }
    try finish("a", packs)
    try finish("b", more)
    try finish("c", [])
    let state = try fixture.open()
    let (a, b, c) = (state.containers[0], state.containers[1], state.containers[2])
    func areThere(_ packs: Set<Digest>, for container: KnownContainer) -> Bool {
      state.arePacksThere(ListedPacks(packs), for: container)
    }
    #expect(areThere(packs, for: a) && areThere(more, for: a))
    #expect(!areThere(packs, for: b) && areThere(more, for: b))
    #expect(areThere([], for: c) && !areThere([], for: a))
    for pack in packs { #expect(!areThere(packs.subtracting([pack]), for: a)) }
  }

  @Test func aSecondRunOfTheSourceIsBusy() throws {
    let state = try fixture.open()
    let error = #expect(throws: OperationError.self) { try fixture.open() }
    #expect(error?.kind == .busy)
    #expect(error?.description.contains("another backup of the same source") == true)
    // The error names the other process.
    let words = error?.description ?? ""
    #expect(words.contains("in progress (process \(getpid()), since 20"), "\(words)")
    let other = StateKey(repository: fixture.key.repository, source: Blake2b.hash([5]))
    #expect(try fixture.open(key: other).remarks.isEmpty)
    withExtendedLifetime(state) {}
  }

  @Test func aFileThatIsMostlyUnusedIsRewritten() throws {
    try fixture.writeSmall("apps/a/data")
    var largest = 0
    for run in 0..<12 {
      let state = try fixture.open()
      #expect(state.remarks.isEmpty)
      let inner = try StateFixture.record(state, 0..<4000, tree: 0)
      let outer = try StateFixture.record(state, [UInt64(run)], directories: [("sub", inner)])
      try state.finish(
        [try StateFixture.container("folders/tree", outer)], snapshot: Blake2b.hash([UInt8(run)]),
        packs: [],
        keepingOthers: true)
      largest = max(largest, try fixture.bytes().count)
    }
    // 12 runs of 0.6 MB, of which only the last is in use.
    #expect(largest < 6 << 20 && largest > 3 << 20, "\(largest)")
    #expect(try fixture.bytes().count < 6 << 20)
    let state = try fixture.open()
    #expect(state.containers.map(\.snapshot) == [StateFixture.snapshot, Blake2b.hash([11])])
    var old = state.directory(
      state.containers[0].entry, key: DirectoryKey(container: "apps/a/data"))
    expectSame(try old.known(4), 4)
    let below = try old.knownDirectory("sub")
    var deep = state.directory(below, key: DirectoryKey(container: "apps/a/data").directory("sub"))
    expectSame(try deep.known(12), 12)
    var outer = state.directory(state.containers[1].entry, key: root)
    #expect(outer.tree == StateFixture.tree(1) && outer.count == 2)
    let sub = try outer.knownDirectory("sub")
    var inner = state.directory(sub, key: root.directory("sub"))
    #expect(inner.count == 4000)
    expectSame(try inner.known(3999), 3999)
  }

  @Test func aRunWorksWithoutAStateFile() throws {
    try fixture.directory.write("a file", at: "sandboxctl")
    let state = try fixture.open()
    #expect(state.remarks.count == 1)
    #expect(try StateFixture.record(state, [1]) == nil)
    var notes = state.makeCheckpoint(root)
    notes.add(
      "a", StateFixture.status(1), isStable: true, encoded: try StateFixture.entry(1).encoded())
    notes.flush()
    try state.checkpoint()
    try state.finish(
      [try StateFixture.container("a", nil)], snapshot: StateFixture.snapshot, packs: [])
    let none = try SourceState.open(fixture.key, in: nil, program: "test")
    #expect(none.remarks == ["there is no cache directory"])
  }
}
