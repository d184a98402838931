import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The decoded frames that a reader caches.
struct FrameCacheTests {
  private static func key(_ number: Int) -> FrameDecoder.Key {
    FrameDecoder.Key(pack: Blake2b.hash([UInt8(number % 7)]), frame: number)
  }

  private static func insert(_ number: Int, size: Int, into cache: inout FrameDecoder.Cache) {
    cache.insert([UInt8](repeating: 1, count: size), for: key(number), cost: size)
  }

  private static func held(_ cache: inout FrameDecoder.Cache, _ numbers: Range<Int>) -> [Int] {
    numbers.filter { cache.value(key($0)) != nil }
  }

  @Test func theFrameUsedLeastRecentlyIsRemoved() {
    var cache = FrameDecoder.Cache(capacity: 40)
    #expect(cache.isEmpty)
    for number in 0..<4 { Self.insert(number, size: 10, into: &cache) }
    #expect(cache.value(Self.key(0)) != nil)
    Self.insert(4, size: 10, into: &cache)
    #expect(Self.held(&cache, 0..<5) == [0, 2, 3, 4])
    // The newest frame stays, even if it exceeds the capacity.
    Self.insert(5, size: 100, into: &cache)
    #expect(Self.held(&cache, 0..<6) == [5])
  }

  @Test func aSmallerCapacityRemovesTheOldest() {
    var cache = FrameDecoder.Cache(capacity: 100)
    for number in 0..<8 { Self.insert(number, size: 10, into: &cache) }
    cache.setCapacity(30)
    #expect(cache.capacity == 30 && Self.held(&cache, 0..<8) == [5, 6, 7])
  }

  /// If there are many frames, the oldest are removed several at a time, and the rest is within the
  /// capacity.
  @Test func manyFramesAreRemovedTogether() {
    var cache = FrameDecoder.Cache(capacity: 1000)
    for number in 0..<5000 { Self.insert(number, size: 5, into: &cache) }
    let held = Self.held(&cache, 0..<5000)
    #expect(held.count >= 150 && held.count <= 200)
    #expect(held == Array((5000 - held.count)..<5000))
  }

  /// A walk of more than two trees decodes each frame once, even if the frames exceed the reader's
  /// usual cache size.
  @Test func aWalkOfManyTreesDecodesEachFrameOnce() throws {
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    var trees: [TreeReference] = []
    for version in 0..<6 {
      let session = try repository.beginWriting()
      // Frames of about 5 MB, and two directories at different paths that both change.
      let target = ByteString([UInt8](repeating: UInt8(ascii: "a"), count: 50_000))
      let below = try ["a", "b"].map { name in
        let entries = (0..<50).map { number in
          TreeEntry(
            name: ByteString("\(name)\(100 + number)"), node: .symlink(target: target),
            modified: Timestamp(seconds: Int64(version) + 1))
        }
        return TreeEntry(
          name: ByteString(name), node: .directory(try session.storeTree(entries)))
      }
      trees.append(try session.storeTree(below))
      _ = try session.finish(
        repository.makeSnapshot(trees[version], sequence: UInt64(version + 1)))
    }
    let reader = try repository.beginReading()
    try reader.walkTogether(trees) { _, _ in .enter }
    let once = reader.decodedFrames
    let each = try repository.beginReading()
    for tree in trees { try each.walk(tree) { _, _ in .enter } }
    #expect(once == each.decodedFrames)
  }
}
