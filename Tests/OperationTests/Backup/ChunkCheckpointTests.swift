import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// The next run knows how much of a large file an interrupted run has read.
@Suite(.spreadScans) struct ChunkCheckpointTests {
  let fixture: StateFixture
  init() throws { fixture = try StateFixture() }

  private static let key = DirectoryKey(container: "folders/tree").file("large")
  private static let length = 1000

  /// The status of a file of a million bytes with a change time in seconds.
  private static func status(_ changed: UInt64 = 0, inode: UInt64 = 7) -> FileStatus {
    let time = Timestamp(seconds: StateFixture.time.seconds + Int64(changed), nanoseconds: 3)
    return FileStatus(
      .file, identity: FileIdentity(device: 1, inode: inode), size: 1_000_000, modified: time,
      changed: time)
  }

  private static func piece(_ number: Int) -> ChunkCheckpoint.Piece {
    ChunkCheckpoint.Piece(
      offset: UInt64(number * length), length: length,
      digest: Blake2b.hash([UInt8(number % 256), UInt8(number / 256)]))
  }

  /// Records pieces by their numbers in a separate run, which is then interrupted.
  private func note(_ numbers: some Sequence<Int>, of status: FileStatus = status()) throws {
    try note(numbers.map(Self.piece), of: status)
  }

  private func note(_ pieces: [ChunkCheckpoint.Piece], of status: FileStatus = status()) throws {
    let state = try fixture.open()
    try state.recordingPieces(of: Self.key, status) { notes in
      for piece in pieces { notes.add(piece) }
      try state.checkpoint()
    }
  }

  private func known(_ status: FileStatus = status(), key: DirectoryKey = key) throws
    -> [ChunkCheckpoint.Piece]
  {
    var pieces = try fixture.open().pieces(of: key, status)
    var (found, end) = ([ChunkCheckpoint.Piece](), UInt64(0))
    while let piece = pieces.first(from: end) {
      found.append(piece)
      end = piece.end
    }
    return found
  }

  @Test func piecesAreReadInOrder() throws {
    try note(0..<100)
    #expect(try known() == (0..<100).map(Self.piece))
    // The next run read some of them again, and continued.
    try note(Array(20..<30) + Array(100..<150))
    #expect(try known() == (0..<150).map(Self.piece))
    #expect(try known(key: DirectoryKey(container: "folders/tree").file("other")).isEmpty)
  }

  @Test func piecesOfAnotherFileAreNotUsed() throws {
    try note(0..<10)
    #expect(try known(Self.status(1)).isEmpty)
    #expect(try known(Self.status(inode: 8)).isEmpty)
    // The file was changed and read again; then the old one was restored.
    try note(0..<5, of: Self.status(1))
    #expect(try known(Self.status(1)) == (0..<5).map(Self.piece))
    #expect(try known() == (0..<10).map(Self.piece))
  }

  /// A file of any size needs little memory: full batches do not wait for a checkpoint.
  @Test func fullBatchesAreWritten() throws {
    struct Ended: Error {}
    let status = FileStatus(
      .file, identity: FileIdentity(device: 1, inode: 7), size: 1 << 40,
      modified: StateFixture.time, changed: StateFixture.time)
    do {
      let state = try fixture.open()
      try state.recordingPieces(of: Self.key, status) { notes in
        for number in 0..<60_000 { notes.add(Self.piece(number)) }
        try state.checkpoint()
        notes.add(Self.piece(60_000))
      }
      // The pieces of a file that was read to its end need not be written; those of another are.
      #expect(throws: Ended.self) {
        try state.recordingPieces(of: Self.key, Self.status()) { notes in
          notes.add(Self.piece(3))
          throw Ended()
        }
      }
      try state.checkpoint()
    }
    #expect(try known(status).count == 60_000)
    #expect(try known() == [Self.piece(3)])
  }

  /// Whatever happens to the checkpoint file, it yields only recorded pieces.
  @Test func aFlippedByteYieldsNoWrongPiece() throws {
    try note(0..<3)
    try note(3..<6)
    let bytes = try fixture.directory.read(fixture.path(".partial"))
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      try fixture.replace(damaged, ".partial")
      let found = try known()
      #expect(found.isEmpty || found == (0..<3).map(Self.piece), "\(index)")
    }
  }

  /// Batches with valid checksums that no run has written.
  @Test(
    arguments: [
      [(1000, 1000), (1500, 1000)], [(0, 0)], [(0, 8 << 20 + 1)], [(999_999, 2)],
      [(2000, 10), (0, 10)],
    ] as [[(UInt64, Int)]])
  func invalidBatchesAreRefused(_ pieces: [(offset: UInt64, length: Int)]) throws {
    try note(
      pieces.map {
        ChunkCheckpoint.Piece(offset: $0.offset, length: $0.length, digest: StateFixture.snapshot)
      })
    #expect(try fixture.directory.read(fixture.path(".partial")).count > 512)
    #expect(try known().isEmpty)
  }
}
