import Codecs
import Testing

@testable import ArchiveStore

struct IndexMergePlanTests {
  /// Returns the sizes after a plan is carried out, if no entry is in two objects.
  private func left(_ sizes: [Int], _ plan: IndexMerge.Plan) -> [Int] {
    let merged = Set(plan.groups.joined())
    let others = sizes.indices.filter { !merged.contains($0) }.map { sizes[$0] }
    return (others + plan.groups.map { group in group.reduce(0) { $0 + sizes[$1] } }).sorted()
  }

  @Test func sizesAreGeometricAfterAMerge() {
    var random = SeededBytes(seed: 8)
    for _ in 0..<300 {
      let sizes = (0..<random.number(0..<12)).map { _ in random.number(1..<1000) }
      let plan = IndexMerge.Plan(sizes: sizes)
      #expect(Set(plan.groups.joined()).count == plan.groups.joined().count)
      #expect(plan.groups.allSatisfy { $0.count > 1 })
      let left = left(sizes, plan)
      #expect(zip(left, left.dropFirst()).allSatisfy { $0 <= $1 / 2 }, "\(sizes): \(left)")
    }
  }

  @Test func geometricSizesAreNotMerged() {
    #expect(IndexMerge.Plan(sizes: []).groups.isEmpty)
    #expect(IndexMerge.Plan(sizes: [5]).groups.isEmpty)
    #expect(IndexMerge.Plan(sizes: [30, 100, 20]).groups == [[0, 2]])
    #expect(IndexMerge.Plan(sizes: [10, 100, 30]).groups.isEmpty)
    #expect(IndexMerge.Plan(sizes: [51, 100]).groups == [[1, 0]])
    #expect(IndexMerge.Plan(sizes: [50, 100]).groups.isEmpty)
  }

  @Test func mergedIndexIsWithinItsLimit() {
    #expect(IndexMerge.Plan(sizes: [60, 60], limit: 100).groups.isEmpty)
    #expect(IndexMerge.Plan(sizes: [60, 60, 40], limit: 100).groups.count == 1)
  }
}

struct IndexMergeTests {
  private static func digest(_ number: Int) -> Digest { Blake2b.hash(Array("\(number)".utf8)) }

  private static func pack(_ number: Int) -> PackTables.Pack {
    .init(
      id: digest(-number), size: 5000,
      frames: [FrameLocation(offset: UInt64(number), stored: 2000, plain: 4 << 20)])
  }

  /// Makes an index object of some packs and the blobs in them.
  private static func object(
    _ packs: [Int], _ blobs: [(blob: Int, pack: Int)], kind: BlobKind = .data
  ) throws -> IndexObject {
    var builder = IndexBuilder()
    builder.packs = packs.map { pack($0) }
    builder.records = blobs.map { blob, pack in
      BlobRecord(
        id: BlobID(kind: kind, digest: digest(blob)), pack: UInt32(packs.firstIndex(of: pack) ?? 0),
        offset: UInt32(blob * 8), length: 8)
    }
    let bytes = builder.encode()
    return try IndexObject(bytes: bytes)
  }

  private static func merge(
    _ objects: [IndexObject], present: Set<Int>? = nil
  ) throws -> IndexObject? {
    let there = present.map { Set($0.map { digest(-$0) }) }
    guard var merge = try IndexMerge(objects, isPresent: { there?.contains($0) ?? true }) else {
      return nil
    }
    var bytes: [UInt8] = []
    guard try merge.write({ bytes += $0 }) else { return nil }
    return try IndexObject(bytes: bytes)
  }

  private static func packs(_ blob: Int, in object: IndexObject) -> Set<Digest> {
    let id = BlobID(kind: .data, digest: digest(blob))
    return Set(IndexSet([object]).findAll(id).map(\.pack))
  }

  @Test func mergeLosesNothing() throws {
    let objects = [
      try Self.object([1, 2], (0..<3000).map { ($0, $0 % 2 + 1) }),
      try Self.object([3], (3000..<3500).map { ($0, 3) }),
      try Self.object([4], (0..<50).map { ($0, 4) }, kind: .tree),
      try Self.object([5], []),
    ]
    let merged = try #require(try Self.merge(objects))
    #expect(merged.blobs == 3550 && merged.packs == 5)
    for number in 0..<3500 {
      let pack = number < 3000 ? number % 2 + 1 : 3
      #expect(Self.packs(number, in: merged) == [Self.digest(-pack)])
      let found = IndexSet([merged]).find(BlobID(kind: .data, digest: Self.digest(number)))
      #expect(found?.offset == number * 8 && found?.frame.offset == UInt64(pack))
    }
    for number in 0..<50 {
      #expect(merged.find(BlobID(kind: .tree, digest: Self.digest(number))) != nil)
    }
    // The order of the objects does not matter.
    #expect(try Self.merge(objects.reversed())?.id == merged.id)
    #expect(try Self.merge([merged] + objects)?.id == merged.id)
  }

  @Test func mergedIndexNamesEveryCopy() throws {
    let objects = try (1...20).map { try Self.object([$0], [(7, $0), (100 + $0, $0)]) }
    let merged = try #require(try Self.merge(objects))
    #expect(merged.blobs == 40)
    #expect(Self.packs(7, in: merged).count == 20)
    for number in 1...20 {
      #expect(Self.packs(100 + number, in: merged).count == 1)
      let one = IndexSet([merged]) { $0 == Self.digest(-number) }
      #expect(one.contains(BlobID(kind: .data, digest: Self.digest(7))))
    }
  }

  /// The entries of a missing pack are dropped if the blob is in another pack. Otherwise they are
  /// kept as a record of the loss.
  @Test func entriesOfMissingPacksAreDropped() throws {
    let objects = [
      try Self.object([1], [(1, 1), (2, 1)]), try Self.object([2], [(1, 2)]),
      try Self.object([3], [(1, 3)]),
    ]
    let merged = try #require(try Self.merge(objects, present: [2]))
    #expect(Self.packs(1, in: merged) == [Self.digest(-2)])
    #expect(Self.packs(2, in: merged) == [Self.digest(-1)])
    #expect(Set(merged.packIDs) == [Self.digest(-1), Self.digest(-2)])
    let lost = try #require(try Self.merge(objects, present: []))
    #expect(Self.packs(1, in: lost).count == 3)
  }

  @Test func contradictoryIndexesAreNotMerged() throws {
    let first = try Self.object([1], [(1, 1)])
    var builder = IndexBuilder()
    builder.packs = [.init(id: Self.digest(-1), size: 4000, frames: Self.pack(1).frames)]
    var bytes = builder.encode()
    let otherSize = try IndexObject(bytes: bytes)
    #expect(try Self.merge([first, otherSize]) == nil)
    builder.packs = [Self.pack(1)]
    builder.records = [
      BlobRecord(id: BlobID(kind: .data, digest: Self.digest(1)), offset: 9, length: 8)
    ]
    bytes = builder.encode()
    let otherPlace = try IndexObject(bytes: bytes)
    #expect(try Self.merge([first, otherPlace]) == nil)
  }
}
