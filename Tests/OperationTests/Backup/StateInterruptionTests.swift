import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// The next run knows which files an interrupted run has read.
@Suite(.spreadScans) struct StateInterruptionTests {
  let fixture: StateFixture
  init() throws { fixture = try StateFixture() }

  private let root = DirectoryKey(container: "folders/tree")

  /// Records generated files in a checkpoint; `finishing` flushes it.
  private func note(
    _ state: SourceState, _ key: DirectoryKey, _ numbers: some Sequence<UInt64>,
    status: (UInt64) -> FileStatus = { StateFixture.status($0) }
  ) throws {
    var notes = state.makeCheckpoint(key)
    for number in numbers {
      notes.add(
        StateFixture.name(number), status(number), isStable: true,
        encoded: try StateFixture.entry(number).encoded())
    }
    notes.flush()
  }

  private func known(_ state: SourceState, _ key: DirectoryKey, _ numbers: [UInt64]) -> [UInt64] {
    var directory = state.directory(state.container("folders/tree")?.entry, key: key)
    return numbers.filter { number in
      guard let known = directory.find(StateFixture.name(number), StateFixture.status(number))
      else {
        return false
      }
      #expect(known.entry == StateFixture.entry(number))
      return known.isOfInterruptedRun
    }
  }

  @Test func theNextRunReadsACheckpoint() throws {
    do {
      let state = try fixture.open()
      try note(state, root, [1, 2, 3])
      try note(state, root.directory("sub"), 0..<2000)
      try note(state, root, [5, 6])
      try state.checkpoint()
    }
    do {
      let state = try fixture.open()
      #expect(known(state, root, [0, 1, 2, 4, 5, 6]) == [1, 2, 5, 6])
      #expect(known(state, root.directory("sub"), [0, 1999, 2000]) == [0, 1999])
      #expect(known(state, root.directory("other"), [0]) == [])
      // Interrupted again: the checkpoints of both runs stay.
      try note(state, root, [4])
      try state.checkpoint()
    }
    let state = try fixture.open()
    #expect(known(state, root, [1, 4, 6]) == [1, 4, 6])
    try state.finish(
      [try StateFixture.container("folders/tree", nil)], snapshot: StateFixture.snapshot, packs: [])
    #expect(try !fixture.isThere(".partial"))
  }

  @Test func checkpointEntriesOutOfOrderAreKept() throws {
    do {
      let state = try fixture.open()
      try note(state, root, [9, 3, 7, 7, 1])
      try state.checkpoint()
    }
    #expect(known(try fixture.open(), root, [1, 3, 7, 9]) == [1, 3, 7, 9])
  }

  @Test func aValidCheckpointEntryOverridesTheState() throws {
    try fixture.writeSmall()
    do {
      let state = try fixture.open()
      // 2 was changed and read; 4 was read as the state file records it, but has changed since.
      try note(state, root, [0])
      try note(state, root, [2, 4]) { StateFixture.status($0 + 30) }
      try state.checkpoint()
    }
    let state = try fixture.open()
    #expect(state.container("folders/tree") != nil)
    var directory = state.directory(state.containers[0].entry, key: root)
    let zero = try directory.known(0)
    #expect(zero.isOfInterruptedRun)
    let two = try directory.known(2, as: StateFixture.status(32))
    #expect(two.isOfInterruptedRun && two.inode == 1032)
    let four = try directory.known(4)
    #expect(!four.isOfInterruptedRun && ChangeRules.isUnchanged(four, StateFixture.status(4)))
  }

  @Test func theLatestCheckpointEntryIsUsed() throws {
    do {
      let state = try fixture.open()
      try note(state, root, [2])
      try note(state, root, [2]) { StateFixture.status($0 + 30) }
      try state.checkpoint()
    }
    let state = try fixture.open()
    var directory = state.directory(nil, key: root)
    let known = try directory.known(2, as: StateFixture.status(32))
    #expect(known.inode == 1032)
  }

  @Test func aPartialRunKeepsTheCheckpoint() throws {
    do {
      let state = try fixture.open()
      try note(state, root, [2])
      try state.checkpoint()
    }
    do {
      let state = try fixture.open()
      try state.finish(
        [try StateFixture.container("c", nil)], snapshot: StateFixture.snapshot, packs: [],
        keepingOthers: true)
    }
    #expect(known(try fixture.open(), root, [2]) == [2])
  }

  @Test func aTornCheckpointKeepsItsCompleteRecords() throws {
    do {
      let state = try fixture.open()
      try note(state, root, [1])
      try note(state, root, [2])
      try state.checkpoint()
    }
    let bytes = try fixture.directory.read(fixture.path(".partial"))
    #expect(bytes.count < 2000)
    var counts: Set<Int> = []
    for length in 0...bytes.count {
      try fixture.replace(Array(bytes[..<length]), ".partial")
      do {
        let state = try fixture.open()
        counts.insert(known(state, root, [1, 2]).count)
        try note(state, root, [3])
        try state.checkpoint()
      }
      // Records after a torn end are found.
      #expect(known(try fixture.open(), root, [3]) == [3], "\(length)")
    }
    #expect(counts == [0, 1, 2])
  }

  @Test func aFlippedByteInACheckpointYieldsNoWrongEntry() throws {
    do {
      let state = try fixture.open()
      try note(state, root, [1])
      try note(state, root, [2])
      try state.checkpoint()
    }
    let bytes = try fixture.directory.read(fixture.path(".partial"))
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      try fixture.replace(damaged, ".partial")
      let found = known(try fixture.open(), root, [1, 2])
      #expect([[], [1]].contains(found), "\(index): \(found)")
    }
  }

  @Test func entriesAreWrittenAfterACheckpoint() throws {
    do {
      let state = try fixture.open()
      var notes = state.makeCheckpoint(root)
      notes.add(
        StateFixture.name(1), StateFixture.status(1), isStable: true,
        encoded: try StateFixture.entry(1).encoded())
      try state.checkpoint()
      // The next entry of that directory writes both.
      notes.add(
        StateFixture.name(2), StateFixture.status(2), isStable: true,
        encoded: try StateFixture.entry(2).encoded())
      try state.checkpoint()
    }
    #expect(known(try fixture.open(), root, [1, 2]) == [1, 2])
  }

  @Test func severalThreadsMayWrite() throws {
    do {
      let state = try fixture.open()
      let workers = try Workers(count: 4, capacity: 8, name: "state")
      for directory in 0..<40 {
        workers.submit {
          try? note(state, root.directory(ByteString("\(directory)")), 0..<300)
          _ = try? StateFixture.record(state, 0..<300)
        }
      }
      workers.finish()
      try state.checkpoint()
    }
    let state = try fixture.open()
    for directory in 0..<40 {
      let key = root.directory(ByteString("\(directory)"))
      #expect(known(state, key, [0, 150, 299]).count == 3)
    }
  }
}
