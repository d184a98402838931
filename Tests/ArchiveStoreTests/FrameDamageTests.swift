import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A damaged frame that can still be decoded: exactly the blobs with a matching hash are read, and
/// a check of the data reports the frame and exactly the lost files.
struct FrameDamageTests {
  private let storage = MemoryStorage()
  private let repository: Repository
  private let snapshot: StoredSnapshot
  /// Incompressible files, so that a byte of the frame is a byte of a file.
  private let files: [(name: String, bytes: [UInt8])]

  init() throws {
    var random = SeededBytes(seed: 77)
    files = (0..<4).map { ("\($0)", random.bytes(20_000)) }
    repository = try Repository.create(in: storage, program: "test")
    snapshot = try repository.back(up: files)
  }

  /// Returns the location of the frame that contains all files.
  private func frame() throws -> (
    path: ObjectPath, range: Range<Int>, blobs: [IndexSet.BlobLocation]
  ) {
    let index = try repository.beginReading().index.set
    let positions = try files.map {
      try #require(index.find(BlobID(kind: .data, digest: Blake2b.hash($0.bytes))))
    }
    let position = positions[0]
    #expect(
      positions.allSatisfy { $0.pack == position.pack && $0.frame.offset == position.frame.offset })
    let start = Int(position.frame.offset)
    return (
      RepositoryLayout.tested.pack(position.pack), start..<start + Int(position.frame.stored),
      positions
    )
  }

  /// Returns which files can be read. Reading them one by one and by a delivery must agree.
  private func readable() throws -> [Bool] {
    let reader = try repository.beginReading()
    let delivered = Delivered()
    let uses = files.enumerated().map { number, file in
      BlobDelivery.Use(
        digest: Blake2b.hash(file.bytes), length: UInt32(file.bytes.count), item: UInt32(number),
        offset: 0)
    }
    try reader.deliver(uses, threads: 1, isStopping: { false }, to: { delivered })
    let alone = files.map { file in
      let error = storeError {
        let bytes = try reader.bytes(at: ByteString(file.name), in: snapshot)
        #expect(bytes == file.bytes)
      }
      #expect(error == nil || error?.kind == .damaged)
      return error == nil
    }
    for (number, file) in files.enumerated() {
      let bytes = delivered.bytes.withLock { $0[UInt32(number)] }
      #expect(bytes == (alone[number] ? file.bytes : nil))
    }
    return alone
  }

  /// The bytes delivered to each item.
  private final class Delivered: BlobDelivery.Sink, Sendable {
    let bytes = Mutex<[UInt32: [UInt8]]>([:])

    func receive(_ blobs: [BlobDelivery.Blob], of frame: [UInt8]) {
      for blob in blobs {
        guard let range = blob.range else { continue }
        bytes.withLock { $0[blob.use.item] = Array(frame[range]) }
      }
    }

    func reportMissing(_ uses: [BlobDelivery.Use], _ error: StoreError) {}
  }

  @Test func wrongChecksumIsReportedAndLosesNothing() throws {
    let frame = try frame()
    for position in 1...4 {
      try storage.changeContent(frame.path) { $0[frame.range.upperBound - position] ^= 0x40 }
      #expect(try readable() == [true, true, true, true])
      let found = try Checked(repository, .everything)
      #expect(found.damaged == ["\(frame.path)"] && found.costs.isEmpty)
      let isNamed = found.findings.contains {
        guard case .damage(_, let reason, _) = $0 else { return false }
        return reason.contains("frame 0: zstd frame: the content does not match its checksum")
      }
      #expect(isNamed, "\(found.findings)")
      try storage.changeContent(frame.path) { $0[frame.range.upperBound - position] ^= 0x40 }
    }
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  /// The checksum stays the same, or is changed to match the changed bytes.
  @Test(arguments: [false, true]) func changedByteLosesOnlyItsFile(isSealed: Bool) throws {
    let frame = try frame()
    let bytes = try storage.content(frame.path)
    var decompressor = try ZstdDecompressor(ignoresChecksum: true)
    for (number, position) in frame.blobs.enumerated() {
      // The stored form of some bytes in the middle of the file.
      let middle = Array(files[number].bytes[10_000..<10_016])
      let stored = try #require(
        frame.range.first { bytes[$0] == middle[0] && bytes[$0...].starts(with: middle) })
      var wrong = bytes
      wrong[stored] ^= 1
      let plain = try decompressor.decompress(
        Array(wrong[frame.range]), limit: FormatLimit.frame)
      #expect(plain[position.offset + 10_000] == middle[0] ^ 1)
      if isSealed {
        // The checksum is the lower half of the XXH64 of the content.
        let sealed = try ZstdCompressor.sealed(plain)
        wrong.replaceSubrange(frame.range.upperBound - 4..<frame.range.upperBound, with: sealed)
        var strict = try ZstdDecompressor()
        #expect(try strict.decompress(Array(wrong[frame.range]), limit: plain.count) == plain)
      }
      try storage.changeContent(frame.path) { $0 = wrong }
      #expect(try readable() == files.indices.map { $0 != number })
      let found = try Checked(repository, .everything)
      #expect(found.damaged == ["\(frame.path)"])
      #expect(found.costs == [ByteString(files[number].name): [snapshot.id]])
    }
  }
}

extension ZstdCompressor {
  /// Returns the checksum of a frame with the given content.
  fileprivate static func sealed(_ plain: [UInt8]) throws -> ArraySlice<UInt8> {
    var compressor = try ZstdCompressor()
    return try compressor.compress(plain).suffix(4)
  }
}
