import ArchiveStore
import Codecs
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// Whatever a state file holds, entries are as some run wrote them or they are not there.
@Suite(.spreadScans) struct StateDamageTests {
  let rig: StateFixture
  init() throws { rig = try StateFixture() }

  private let root = DirectoryKey(container: "folders/tree")

  /// Opens what is there and looks at all that `writeSmall` wrote; gives how much of it is known.
  @discardableResult private func look() throws -> Int {
    let state = try rig.open()
    guard let container = state.container("folders/tree") else {
      #expect(state.containers.isEmpty)
      return 0
    }
    #expect(container.snapshot == StateFixture.snapshot)
    var count = 1
    var directory = state.directory(container.entry, key: root)
    if let tree = directory.tree { #expect(tree == StateFixture.tree(1)) }
    for number: UInt64 in [0, 2, 4] { count += check(&directory, number) }
    if let sub = directory.find("sub", StateFixture.status(0, .directory)) {
      var inner = state.directory(sub, key: root.directory("sub"))
      for number: UInt64 in [10, 11, 12] { count += check(&inner, number) }
    }
    return count
  }

  private func check(_ directory: inout KnownDirectory, _ number: UInt64) -> Int {
    let status = StateFixture.status(number)
    guard let known = directory.find(StateFixture.name(number), status) else { return 0 }
    #expect(known.entry == StateFixture.entry(number), "\(number)")
    #expect(ChangeRules.isUnchanged(known, status))
    return 1
  }

  private static let all = 7

  @Test func everyByteFlipped() throws {
    try rig.writeSmall()
    #expect(try look() == Self.all)
    let bytes = try rig.bytes()
    var harmless = 0
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      try rig.replace(damaged)
      let count = try look()
      if count == Self.all { harmless += 1 }
    }
    // What is in neither head nor record means nothing.
    #expect(harmless == 8192 - 512, "\(harmless)")
  }

  @Test func truncatedAtEveryLength() throws {
    try rig.writeSmall()
    let bytes = try rig.bytes()
    for count in stride(from: bytes.count - 1, through: 0, by: -1) {
      try rig.replace(Array(bytes[..<count]))
      #expect(try look() < Self.all)
    }
  }

  @Test func randomBytes() throws {
    var random = Seeded.fresh()
    try rig.writeSmall()
    let bytes = try rig.bytes()
    for _ in 0..<300 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        let length = Int.random(in: 1...64, using: &random)
        let at = Int.random(in: 0..<(damaged.count - length), using: &random)
        damaged.replaceSubrange(at..<(at + length), with: random.bytes(length))
      }
      try rig.replace(damaged)
      try look()
      try rig.replace(random.bytes(20_000))
      #expect(try look() == 0)
    }
  }

  @Test func recordsWithoutChecksums() throws {
    var random = Seeded.fresh()
    try rig.writeSmall()
    let whole = try rig.bytes()
    let records = Array(whole[8192...])
    // The first record is the inner directory's.
    #expect(StateExamination.examine(whole, as: rig.key) == 8)
    #expect(StateExamination.examineRecord(Array(whole[..<512])) == 1)
    var found = 0
    for start in records.indices {
      found += StateExamination.examineRecord(Array(records[start...]))
      found += StateExamination.examineRecord(Array(records[..<start]))
    }
    #expect(found > 3)
    let inner = Array(records[..<(40 + 3 * Self.entrySize)])
    #expect(StateExamination.examineRecord(inner) == 3)
    for index in inner.indices {
      for bit in 0..<8 {
        var damaged = inner
        damaged[index] ^= UInt8(1 << bit)
        #expect(StateExamination.examineRecord(damaged) <= 4 + 21)
      }
    }
    for _ in 0..<2000 {
      _ = StateExamination.examineRecord(random.bytes(Int.random(in: 0...300, using: &random)))
    }
  }

  /// An entry of a made-up file: 48 bytes, the name, and the tree's entry.
  private static let entrySize: Int = {
    let encoded = (try? StateFixture.entry(10).encoded().count) ?? 0
    return 48 + StateFixture.name(10).count + encoded
  }()

  @Test func aDamagedDirectoryIsForgottenAndRecordedAnew() throws {
    try rig.writeSmall()
    var bytes = try rig.bytes()
    bytes[8192 + 100] ^= 1
    try rig.replace(bytes)
    #expect(try look() == 4)
    do {
      let state = try rig.open()
      var directory = state.directory(state.containers[0].entry, key: root)
      var record = state.makeRecord()
      for number: UInt64 in [0, 2, 4] {
        record.keep(try directory.known(number))
      }
      let sub = try directory.knownDirectory("sub")
      let inner = state.directory(sub, key: root.directory("sub"))
      #expect(inner.tree == nil && inner.place == nil && inner.count == 0)
      record.keep(sub, directory: try StateFixture.record(state, [10, 11, 12], tree: 0))
      let place = state.write(record, tree: StateFixture.tree(1))
      try state.finish(
        [try StateFixture.container("folders/tree", place)], snapshot: StateFixture.snapshot,
        packs: [])
    }
    #expect(try look() == Self.all)
  }

  @Test func theOlderHeadHoldsWhenTheNewerIsTorn() throws {
    try rig.writeSmall()
    do {
      let state = try rig.open()
      let directory = state.directory(state.containers[0].entry, key: root)
      try state.finish(
        [try StateFixture.container("folders/tree", directory.place)], snapshot: Blake2b.hash([50]),
        packs: [])
    }
    var bytes = try rig.bytes()
    #expect(try rig.open().containers[0].snapshot == Blake2b.hash([50]))
    bytes[4096 + 100] ^= 1
    try rig.replace(bytes)
    #expect(try look() == Self.all)
  }

  @Test func whatIsNotOursIsNotUsed() throws {
    try rig.writeSmall()
    let name = ByteString(rig.key.source.hex + ".state")
    let directory = try Directory.open(path: rig.directory.path(rig.above))
    func expectRefused(_ reason: String) throws {
      let state = try rig.open()
      #expect(state.containers.isEmpty)
      #expect(state.remarks.count == 1 && state.remarks[0].contains(reason), "\(state.remarks)")
    }
    try directory.setPermissions(0o620, of: name)
    try expectRefused("other users may write to it")
    try directory.setPermissions(0o602, of: name)
    try expectRefused("other users may write to it")
    try directory.setPermissions(0o644, of: name)
    #expect(try look() == Self.all)
    if Host.userID == 0 {
      try directory.setOwner(user: 65534, group: 0, of: name)
      try expectRefused("another user's")
      try directory.setOwner(user: 0, group: 0, of: name)
    }
    try directory.rename(name, to: "elsewhere", in: directory)
    try directory.createLink(name, to: "elsewhere")
    try expectRefused("no file")
    try directory.remove(name)
    try directory.createSpecial(name, kind: .fifo, permissions: 0o600)
    try expectRefused("no file")
    // What is refused is replaced by the next run that finishes.
    try rig.replaceRefused()
    #expect(try look() == Self.all)
  }

  @Test func theStateOfAnotherSourceIsNotUsed() throws {
    try rig.writeSmall()
    let bytes = try rig.bytes()
    let other = StateKey(repository: rig.key.repository, source: Blake2b.hash([5]))
    _ = try rig.open(key: other)
    try rig.directory.write(
      bytes, at: ByteString("sandboxctl/\(other.repository.hex)/\(other.source.hex).state"))
    let state = try rig.open(key: other)
    #expect(state.containers.isEmpty)
    #expect(state.remarks.first?.contains("of another source") == true)
  }

  @Test func everyCallFailsOnce() throws {
    try rig.writeSmall()
    let before = try rig.bytes()
    var fired = true
    var call = 0
    while fired {
      call += 1
      try rig.replace(before)
      let plan = Faults.Plan(at: call, number: 5)
      do {
        try Faults.inject(plan) {
          let state = try rig.open()
          let place = try StateFixture.record(state, 0..<200)
          var notes = state.makeNotes(root)
          notes.add(
            "a", StateFixture.status(1), isStable: true,
            encoded: try StateFixture.entry(1).encoded())
          notes.flush()
          try? state.checkpoint()
          try state.finish(
            [try StateFixture.container("folders/tree", place)], snapshot: Blake2b.hash([50]),
            packs: []
          )
        }
      } catch let error as LifecycleError {
        #expect(error.description.contains("could not be kept"), "call \(call)")
      }
      fired = plan.hasFired
      let state = try rig.open()
      let snapshot = state.container("folders/tree")?.snapshot
      #expect(snapshot == StateFixture.snapshot || snapshot == Blake2b.hash([50]), "call \(call)")
      #expect(fired || snapshot == Blake2b.hash([50]))
    }
    #expect(call > 15, "\(call)")
  }
}

extension StateFixture {
  /// Writes the small state over whatever is there and is not used.
  fileprivate func replaceRefused() throws {
    let state = try open()
    let inner = try Self.record(state, [10, 11, 12], tree: 0)
    let outer = try Self.record(state, [0, 2, 4], directories: [("sub", inner)])
    try state.finish(
      [try Self.container("folders/tree", outer)], snapshot: Self.snapshot, packs: [])
  }
}
