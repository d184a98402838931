import Codecs
import Testing

@testable import ArchiveStore

/// The index entries of packs whose own tables are unusable.
struct PackEntriesTests {
  private static func digest(_ number: Int) -> Digest { Blake2b.hash(Array("\(number)".utf8)) }

  private static func pack(_ number: Int) -> Digest { digest(-1 - number) }

  /// Makes an index object of some packs, over which the blobs are distributed in turn.
  private static func object(_ packs: Range<Int>, blobs: Range<Int>) throws -> IndexObject {
    var builder = IndexBuilder()
    builder.packs = packs.map { number in
      PackTables.Pack(
        id: pack(number), size: 5000,
        frames: [FrameLocation(offset: 0, stored: 2000, plain: 4 << 20)])
    }
    builder.records = blobs.map { number in
      BlobRecord(
        id: BlobID(kind: .data, digest: digest(number)), pack: UInt32(number % packs.count),
        offset: UInt32(number % 100_000 * 8), length: 8)
    }
    return try IndexObject(bytes: builder.encode())
  }

  @Test func entriesOfAPackAreFoundInAllObjectsThatNameIt() throws {
    let index = CheckedIndex([
      try Self.object(0..<7, blobs: 0..<500), try Self.object(5..<6, blobs: 900..<903),
      try Self.object(8..<9, blobs: 0..<0),
    ])
    for _ in 0..<2 {
      for number in 0..<7 {
        var expected = Set((0..<500).filter { $0 % 7 == number }.map(Self.digest))
        if number == 5 { expected.formUnion((900..<903).map(Self.digest)) }
        let records = index.records(of: Self.pack(number))
        #expect(Set(records.map(\.digest)) == expected && records.count == expected.count)
        #expect(records.allSatisfy { $0.pack == 0 })
      }
    }
    #expect(index.records(of: Self.pack(8)).isEmpty && index.records(of: Self.pack(9)).isEmpty)
  }

  /// One scan serves all packs; otherwise a thousand damaged packs would need a thousand scans.
  @Test func manyPacksNeedOneScan() throws {
    let index = CheckedIndex([try Self.object(0..<1000, blobs: 0..<100_000)])
    let clock = ContinuousClock()
    let scan = clock.measure { #expect(index.counts().count == 1000) }
    let packs = (0..<1000).map(Self.pack)
    var counts: [Int] = []
    let all = clock.measure { counts = packs.map { index.records(of: $0).count } }
    #expect(counts == [Int](repeating: 100, count: 1000))
    #expect(all < scan * 500)
  }
}
