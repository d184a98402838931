import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A large file written in portions.
struct FileWriterTests {
  private static let size = 40 << 20
  private static let portion = 1 << 20

  enum Kind: CaseIterable { case noise, longPieces, database }

  /// Returns bytes that are cut by content, at the limit of 4 MiB, or at pages; none repeats.
  private func bytes(_ kind: Kind) -> [UInt8] {
    var random = SeededBytes(seed: 31)
    if kind == .noise { return random.bytes(Self.size) }
    var bytes = [UInt8](repeating: 0, count: Self.size)
    let step = kind == .database ? 16 << 10 : 1 << 20
    for range in stride(from: 0, to: bytes.count, by: step) {
      bytes.replaceSubrange(range..<(range + 16), with: random.bytes(16))
    }
    if kind == .database {
      bytes.replaceSubrange(..<16, with: DatabaseHead.bytes)
    }
    return bytes
  }

  /// Stored pieces can be passed by hash, and the data around them is cut as if everything had been
  /// passed as bytes.
  @Test(arguments: Kind.allCases) func storedPiecesArePassedByName(kind: Kind) throws {
    let bytes = bytes(kind)
    let hints = FileHints(size: UInt64(bytes.count))
    let whole = try Repository.create(in: MemoryStorage(), program: "test").beginWriting()
    let expected = try whole.storeFile(logicalPath: "folders/x/large", hints: hints) {
      try $0.append(bytes)
    }
    let ranges = ContentCutter.pieces(
      of: bytes.span, isDatabase: kind == .database, size: UInt64(bytes.count))
    let isStored = ranges.indices.map { $0 > 2 && $0 % 7 < 4 && $0 < ranges.count - 2 }
    let session = try Repository.create(in: MemoryStorage(), program: "test").beginWriting()
    let writer = try session.makeWriter()
    for (range, isStored) in zip(ranges, isStored) where isStored {
      _ = try writer.storeBytes(Array(bytes[range]), kind: .data)
    }
    var pieces = 0
    let content = try writer.storeFile(
      logicalPath: "folders/x/large", hints: hints
    ) { file in
      for range in ranges {
        let digest = Blake2b.hash(bytes.span.extracting(range))
        if try file.append(stored: digest, length: range.count) {
          pieces += 1
        } else {
          try file.append(bytes.span.extracting(range))
        }
      }
    }
    #expect(content == expected)
    #expect(pieces >= isStored.count { $0 } && pieces > 0)
  }

  /// Each piece is stored under the hash of its bytes, and memory stays within its limit.
  @Test(arguments: Kind.allCases) func memoryIsBounded(kind: Kind) throws {
    let bytes = bytes(kind)
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    let session = try repository.beginWriting()
    var most = 0
    let content = try session.storeFile(logicalPath: "folders/x/large") { writer in
      for start in stride(from: 0, to: bytes.count, by: Self.portion) {
        try writer.append(bytes.span.extracting(start..<(start + Self.portion)))
        most = max(most, writer.cutter.window.count)
      }
    }
    print("\(kind): \(most)")
    #expect(most <= FileWriter.maximumPending + Self.portion)
    #expect(kind == .database || most > FileWriter.wholeLimit, "several pieces are hashed together")
    let ranges = ContentCutter.pieces(
      of: bytes.span, isDatabase: kind == .database, size: UInt64(bytes.count))
    #expect(content.level > 0 || content.pieces.count == ranges.count)
    let names = ranges.map { Blake2b.hash(bytes.span.extracting($0)) }
    let tree = try session.storeTree([TreeEntry(name: "large", node: .file(content))])
    let snapshot = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    let missing = names.filter { !reader.index.set.contains(BlobID(kind: .data, digest: $0)) }
    #expect(missing.isEmpty)
    #expect(try reader.bytes(at: "large", in: snapshot) == bytes)
  }
}
