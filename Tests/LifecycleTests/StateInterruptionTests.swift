import ArchiveStore
import Codecs
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// What a run that did not finish has read is known to the next.
@Suite(.spreadScans) struct StateInterruptionTests {
  let rig: StateFixture
  init() throws { rig = try StateFixture() }

  private let root = DirectoryKey(container: "folders/tree")

  /// Notes made-up files; `finishing` says whether it is flushed.
  private func note(
    _ state: SourceState, _ key: DirectoryKey, _ numbers: some Sequence<UInt64>,
    status: (UInt64) -> FileStatus = { StateFixture.status($0) }
  ) throws {
    var notes = state.makeNotes(key)
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

  @Test func notesOfACheckpointAreKnownToTheNextRun() throws {
    do {
      let state = try rig.open()
      try note(state, root, [1, 2, 3])
      try note(state, root.directory("sub"), 0..<2000)
      try note(state, root, [5, 6])
      try state.checkpoint()
    }
    do {
      let state = try rig.open()
      #expect(known(state, root, [0, 1, 2, 4, 5, 6]) == [1, 2, 5, 6])
      #expect(known(state, root.directory("sub"), [0, 1999, 2000]) == [0, 1999])
      #expect(known(state, root.directory("other"), [0]) == [])
      // Interrupted again: the notes of both runs stay.
      try note(state, root, [4])
      try state.checkpoint()
    }
    let state = try rig.open()
    #expect(known(state, root, [1, 4, 6]) == [1, 4, 6])
    try state.finish(
      [try StateFixture.container("folders/tree", nil)], snapshot: StateFixture.snapshot, packs: [])
    #expect(try !rig.isThere(".partial"))
  }

  @Test func notesThatComeOutOfOrderAreKept() throws {
    do {
      let state = try rig.open()
      try note(state, root, [9, 3, 7, 7, 1])
      try state.checkpoint()
    }
    #expect(known(try rig.open(), root, [1, 3, 7, 9]) == [1, 3, 7, 9])
  }

  @Test func aNoteIsUsedWhereItStillHoldsElseTheState() throws {
    try rig.writeSmall()
    do {
      let state = try rig.open()
      // 2 was changed and read; 4 was read as it is in the state, but has been changed since.
      try note(state, root, [0])
      try note(state, root, [2, 4]) { StateFixture.status($0 + 30) }
      try state.checkpoint()
    }
    let state = try rig.open()
    #expect(state.container("folders/tree") != nil)
    var directory = state.directory(state.containers[0].entry, key: root)
    let zero = try directory.known(0)
    #expect(zero.isOfInterruptedRun)
    let two = try directory.known(2, as: StateFixture.status(32))
    #expect(two.isOfInterruptedRun && two.inode == 1032)
    let four = try directory.known(4)
    #expect(!four.isOfInterruptedRun && ChangeRules.isUnchanged(four, StateFixture.status(4)))
  }

  @Test func theLaterNoteOfAFileHolds() throws {
    do {
      let state = try rig.open()
      try note(state, root, [2])
      try note(state, root, [2]) { StateFixture.status($0 + 30) }
      try state.checkpoint()
    }
    let state = try rig.open()
    var directory = state.directory(nil, key: root)
    let known = try directory.known(2, as: StateFixture.status(32))
    #expect(known.inode == 1032)
  }

  @Test func aRunOverAPartKeepsTheNotes() throws {
    do {
      let state = try rig.open()
      try note(state, root, [2])
      try state.checkpoint()
    }
    do {
      let state = try rig.open()
      try state.finish(
        [try StateFixture.container("c", nil)], snapshot: StateFixture.snapshot, packs: [],
        keepingOthers: true)
    }
    #expect(known(try rig.open(), root, [2]) == [2])
  }

  @Test func tornAtEveryLengthWhatIsWholeIsKnown() throws {
    do {
      let state = try rig.open()
      try note(state, root, [1])
      try note(state, root, [2])
      try state.checkpoint()
    }
    let bytes = try rig.directory.read(rig.path(".partial"))
    #expect(bytes.count < 2000)
    var counts: Set<Int> = []
    for length in 0...bytes.count {
      try rig.replace(Array(bytes[..<length]), ".partial")
      do {
        let state = try rig.open()
        counts.insert(known(state, root, [1, 2]).count)
        try note(state, root, [3])
        try state.checkpoint()
      }
      // What comes behind a torn end is found.
      #expect(known(try rig.open(), root, [3]) == [3], "\(length)")
    }
    #expect(counts == [0, 1, 2])
  }

  @Test func everyByteOfItFlipped() throws {
    do {
      let state = try rig.open()
      try note(state, root, [1])
      try note(state, root, [2])
      try state.checkpoint()
    }
    let bytes = try rig.directory.read(rig.path(".partial"))
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      try rig.replace(damaged, ".partial")
      let found = known(try rig.open(), root, [1, 2])
      #expect([[], [1]].contains(found), "\(index): \(found)")
    }
  }

  @Test func notesReachTheFileWhenACheckpointWasMade() throws {
    do {
      let state = try rig.open()
      var notes = state.makeNotes(root)
      notes.add(
        StateFixture.name(1), StateFixture.status(1), isStable: true,
        encoded: try StateFixture.entry(1).encoded())
      try state.checkpoint()
      // The next note of that directory hands over both.
      notes.add(
        StateFixture.name(2), StateFixture.status(2), isStable: true,
        encoded: try StateFixture.entry(2).encoded())
      try state.checkpoint()
    }
    #expect(known(try rig.open(), root, [1, 2]) == [1, 2])
  }

  @Test func severalThreadsMayNoteAndRecord() throws {
    do {
      let state = try rig.open()
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
    let state = try rig.open()
    for directory in 0..<40 {
      let key = root.directory(ByteString("\(directory)"))
      #expect(known(state, key, [0, 150, 299]).count == 3)
    }
  }
}
