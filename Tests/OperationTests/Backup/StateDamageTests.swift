import ArchiveStore
import Codecs
import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// Whatever damage a state file has, its entries are either as written or absent.
@Suite(.spreadScans) struct StateDamageTests {
  let fixture: StateFixture
  init() throws { fixture = try StateFixture() }

  private let root = DirectoryKey(container: "folders/tree")

  /// Opens the state file and looks up everything that `writeSmall` wrote. Returns the number of
  /// entries found.
  @discardableResult private func examine() throws -> Int {
    let state = try fixture.open()
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

  @Test func aFlippedByteYieldsNoWrongEntry() throws {
    try fixture.writeSmall()
    #expect(try examine() == Self.all)
    let bytes = try fixture.bytes()
    var harmless = 0
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      try fixture.replace(damaged)
      let count = try examine()
      if count == Self.all { harmless += 1 }
    }
    // Bytes outside of heads and records have no meaning.
    #expect(harmless == 8192 - 512, "\(harmless)")
  }

  @Test func aTruncatedFileYieldsNoWrongEntry() throws {
    try fixture.writeSmall()
    let bytes = try fixture.bytes()
    for count in stride(from: bytes.count - 1, through: 0, by: -1) {
      try fixture.replace(Array(bytes[..<count]))
      #expect(try examine() < Self.all)
    }
  }

  @Test func randomBytesYieldNoWrongEntry() throws {
    var random = Seeded.fresh()
    try fixture.writeSmall()
    let bytes = try fixture.bytes()
    for _ in 0..<300 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        let length = Int.random(in: 1...64, using: &random)
        let at = Int.random(in: 0..<(damaged.count - length), using: &random)
        damaged.replaceSubrange(at..<(at + length), with: random.bytes(length))
      }
      try fixture.replace(damaged)
      try examine()
      try fixture.replace(random.bytes(20_000))
      #expect(try examine() == 0)
    }
  }

  @Test func damagedRecordsAreRefusedWithoutChecksums() throws {
    var random = Seeded.fresh()
    try fixture.writeSmall()
    let whole = try fixture.bytes()
    let records = Array(whole[8192...])
    // The first record is the inner directory's.
    #expect(StateExamination.examine(whole, as: fixture.key) == 8)
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

  /// The size of a generated file's entry: 48 bytes, the name, and the tree's entry.
  private static let entrySize: Int = {
    let encoded = (try? StateFixture.entry(10).encoded().count) ?? 0
    return 48 + StateFixture.name(10).count + encoded
  }()

  @Test func aDamagedDirectoryIsForgottenAndRecordedAgain() throws {
    try fixture.writeSmall()
    var bytes = try fixture.bytes()
    bytes[8192 + 100] ^= 1
    try fixture.replace(bytes)
    #expect(try examine() == 4)
    do {
      let state = try fixture.open()
      var directory = state.directory(state.containers[0].entry, key: root)
      var record = state.makeRecord()
      for number: UInt64 in [0, 2, 4] {
        record.reuse(try directory.known(number))
      }
      let sub = try directory.knownDirectory("sub")
      let inner = state.directory(sub, key: root.directory("sub"))
      #expect(inner.tree == nil && inner.pointer == nil && inner.count == 0)
      record.reuse(sub, record: try StateFixture.record(state, [10, 11, 12], tree: 0))
      let location = state.write(record, tree: StateFixture.tree(1))
      try state.finish(
        [try StateFixture.container("folders/tree", location)], snapshot: StateFixture.snapshot,
        packs: [])
    }
    #expect(try examine() == Self.all)
  }

  @Test func theOlderHeadIsUsedIfTheNewerIsTorn() throws {
    try fixture.writeSmall()
    do {
      let state = try fixture.open()
      let directory = state.directory(state.containers[0].entry, key: root)
      try state.finish(
        [try StateFixture.container("folders/tree", directory.pointer)],
        snapshot: Blake2b.hash([50]),
        packs: [])
    }
    var bytes = try fixture.bytes()
    #expect(try fixture.open().containers[0].snapshot == Blake2b.hash([50]))
    bytes[4096 + 100] ^= 1
    try fixture.replace(bytes)
    #expect(try examine() == Self.all)
  }

  @Test func aFileOfAnotherUserOrFormatIsNotUsed() throws {
    try fixture.writeSmall()
    let name = ByteString(fixture.key.source.hex + ".state")
    let directory = try Directory.open(path: fixture.directory.path(fixture.above))
    func expectRefused(_ reason: String) throws {
      let state = try fixture.open()
      #expect(state.containers.isEmpty)
      #expect(state.remarks.count == 1 && state.remarks[0].contains(reason), "\(state.remarks)")
    }
    try directory.setPermissions(0o620, of: name)
    try expectRefused("other users may write to it")
    try directory.setPermissions(0o602, of: name)
    try expectRefused("other users may write to it")
    try directory.setPermissions(0o644, of: name)
    #expect(try examine() == Self.all)
    if Host.userID == 0 {
      try directory.setOwner(user: 65534, group: 0, of: name)
      try expectRefused("another user owns it")
      try directory.setOwner(user: 0, group: 0, of: name)
    }
    try directory.rename(name, to: "elsewhere", in: directory)
    try directory.createLink(name, to: "elsewhere")
    try expectRefused("not a regular file")
    try directory.remove(name)
    try directory.createSpecial(name, kind: .fifo, permissions: 0o600)
    try expectRefused("not a regular file")
    // The next completed run replaces a refused file.
    try fixture.replaceRefused()
    #expect(try examine() == Self.all)
  }

  @Test func theStateOfAnotherSourceIsNotUsed() throws {
    try fixture.writeSmall()
    let bytes = try fixture.bytes()
    let other = StateKey(repository: fixture.key.repository, source: Blake2b.hash([5]))
    _ = try fixture.open(key: other)
    try fixture.directory.write(
      bytes, at: ByteString("sandboxctl/\(other.repository.hex)/\(other.source.hex).state"))
    let state = try fixture.open(key: other)
    #expect(state.containers.isEmpty)
    #expect(state.remarks.first?.contains("belongs to another source") == true)
  }

  @Test func aFailedCallLeavesAValidState() throws {
    try fixture.writeSmall()
    let before = try fixture.bytes()
    var fired = true
    var call = 0
    while fired {
      call += 1
      try fixture.replace(before)
      let plan = Faults.Plan(at: call, number: 5)
      do {
        try Faults.inject(plan) {
          let state = try fixture.open()
          let location = try StateFixture.record(state, 0..<200)
          var notes = state.makeCheckpoint(root)
          notes.add(
            "a", StateFixture.status(1), isStable: true,
            encoded: try StateFixture.entry(1).encoded())
          notes.flush()
          try? state.checkpoint()
          try state.finish(
            [try StateFixture.container("folders/tree", location)], snapshot: Blake2b.hash([50]),
            packs: []
          )
        }
      } catch let error as OperationError {
        #expect(error.description.contains("cannot save the state"), "call \(call)")
      }
      fired = plan.hasFired
      let state = try fixture.open()
      let snapshot = state.container("folders/tree")?.snapshot
      #expect(snapshot == StateFixture.snapshot || snapshot == Blake2b.hash([50]), "call \(call)")
      #expect(fired || snapshot == Blake2b.hash([50]))
    }
    #expect(call > 15, "\(call)")
  }
}

extension StateFixture {
  /// Writes the small state over an existing file that is not used.
  fileprivate func replaceRefused() throws {
    let state = try open()
    let inner = try Self.record(state, [10, 11, 12], tree: 0)
    let outer = try Self.record(state, [0, 2, 4], directories: [("sub", inner)])
    try state.finish(
      [try Self.container("folders/tree", outer)], snapshot: Self.snapshot, packs: [])
  }
}
