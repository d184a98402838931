import Codecs
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// What a run notes of a large file that it does not come to the end of is known to the next.
@Suite(.spreadScans) struct StatePiecesTests {
  let rig: StateFixture
  init() throws { rig = try StateFixture() }

  private static let key = DirectoryKey(container: "folders/tree").file("large")
  private static let length = 1000

  /// A file of a million bytes that was changed in the second of that number.
  private static func status(_ changed: UInt64 = 0, inode: UInt64 = 7) -> FileStatus {
    let time = Timestamp(seconds: StateFixture.time.seconds + Int64(changed), nanoseconds: 3)
    return FileStatus(
      .file, identity: FileIdentity(device: 1, inode: inode), size: 1_000_000, modified: time,
      changed: time)
  }

  private static func piece(_ number: Int) -> ReadPiece {
    ReadPiece(
      offset: UInt64(number * length), length: length,
      digest: Blake2b.hash([UInt8(number % 256), UInt8(number / 256)]))
  }

  /// Notes pieces by their numbers, in a run of its own that is interrupted.
  private func note(_ numbers: some Sequence<Int>, of status: FileStatus = status()) throws {
    try note(numbers.map(Self.piece), of: status)
  }

  private func note(_ pieces: [ReadPiece], of status: FileStatus = status()) throws {
    let state = try rig.open()
    try state.notingPieces(of: Self.key, status) { notes in
      for piece in pieces { notes.add(piece) }
      try state.checkpoint()
    }
  }

  private func known(_ status: FileStatus = status(), key: DirectoryKey = key) throws -> [ReadPiece]
  {
    var pieces = try rig.open().pieces(of: key, status)
    var (found, end) = ([ReadPiece](), UInt64(0))
    while let piece = pieces.first(from: end) {
      found.append(piece)
      end = piece.end
    }
    return found
  }

  @Test func theyAreKnownInTheirOrder() throws {
    try note(0..<100)
    #expect(try known() == (0..<100).map(Self.piece))
    // The next run read some of them again, and went on.
    try note(Array(20..<30) + Array(100..<150))
    #expect(try known() == (0..<150).map(Self.piece))
    #expect(try known(key: DirectoryKey(container: "folders/tree").file("other")).isEmpty)
  }

  @Test func ofAnotherFileNothingIsKnown() throws {
    try note(0..<10)
    #expect(try known(Self.status(1)).isEmpty)
    #expect(try known(Self.status(inode: 8)).isEmpty)
    // It was changed, and read again; then the old one came back.
    try note(0..<5, of: Self.status(1))
    #expect(try known(Self.status(1)) == (0..<5).map(Self.piece))
    #expect(try known() == (0..<10).map(Self.piece))
  }

  /// Of a file of any size little is held: full batches do not wait for a checkpoint.
  @Test func fullBatchesAreHandedOver() throws {
    struct Ended: Error {}
    let status = FileStatus(
      .file, identity: FileIdentity(device: 1, inode: 7), size: 1 << 40,
      modified: StateFixture.time, changed: StateFixture.time)
    do {
      let state = try rig.open()
      try state.notingPieces(of: Self.key, status) { notes in
        for number in 0..<60_000 { notes.add(Self.piece(number)) }
        try state.checkpoint()
        notes.add(Self.piece(60_000))
      }
      // What is noted of a file that was read to its end need not be handed over; of another it is.
      #expect(throws: Ended.self) {
        try state.notingPieces(of: Self.key, Self.status()) { notes in
          notes.add(Self.piece(3))
          throw Ended()
        }
      }
      try state.checkpoint()
    }
    #expect(try known(status).count == 60_000)
    #expect(try known() == [Self.piece(3)])
  }

  /// Whatever becomes of the file, what it gives was noted.
  @Test func everyByteOfItFlipped() throws {
    try note(0..<3)
    try note(3..<6)
    let bytes = try rig.directory.read(rig.path(".partial"))
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      try rig.replace(damaged, ".partial")
      let found = try known()
      #expect(found.isEmpty || found == (0..<3).map(Self.piece), "\(index)")
    }
  }

  /// Batches with right checksums that no run has written.
  @Test(
    arguments: [
      [(1000, 1000), (1500, 1000)], [(0, 0)], [(0, 8 << 20 + 1)], [(999_999, 2)],
      [(2000, 10), (0, 10)],
    ] as [[(UInt64, Int)]])
  func batchesAgainstTheRules(_ pieces: [(offset: UInt64, length: Int)]) throws {
    try note(
      pieces.map { ReadPiece(offset: $0.offset, length: $0.length, digest: StateFixture.snapshot) })
    #expect(try rig.directory.read(rig.path(".partial")).count > 512)
    #expect(try known().isEmpty)
  }
}
