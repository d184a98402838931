import Codecs
import Testing

@testable import ArchiveStore

/// Bytes of several packs that are buffered and hashed together.
struct MultiStreamHasherTests {
  /// The number and size of portions, including sizes that are not a multiple of a block.
  private static let rooms = [(64, 1024), (8, 1000), (5, 128), (2, 77)]

  /// Several packs receive pieces of all sizes, end one after another, and are followed by others.
  @Test(arguments: rooms) func everyPackHasItsDigest(count: Int, size: Int) {
    var random = SeededBytes(seed: 41)
    let hasher = MultiStreamHasher(count: count, size: size)
    for _ in 0..<12 {
      var packs = (0..<5).map { _ in OpenPack(hasher) }
      for _ in 0..<40 {
        let most = [2, size + 1, 3 * size, 2 * count * size][random.number(0..<4)]
        packs[random.number(0..<packs.count)].append(random.bytes(random.number(0..<most)))
      }
      for index in packs.indices { packs[index].expectDigest() }
      #expect(hasher.gathered == 0)
    }
  }

  /// There are more packs than portions, and none of them fills a portion.
  @Test func morePacksThanPortionsAreHashed() {
    let hasher = MultiStreamHasher(count: 4, size: 500)
    var packs = (0..<20).map { _ in OpenPack(hasher) }
    for round in 0..<3 {
      for index in packs.indices { packs[index].append([UInt8(index), UInt8(round), 3]) }
    }
    for index in packs.indices { packs[index].expectDigest() }
    #expect(hasher.gathered == 0)
  }

  @Test func emptyPackIsHashed() {
    let hasher = MultiStreamHasher(count: 4, size: 500)
    var hash = MultiStreamHasher.Stream(of: hasher)
    #expect(hash.finish() == Blake2b.hash([]))
    hash.append([])
    #expect(hash.finish() == Blake2b.hash([]))
  }

  /// Nothing is hashed before the buffer is full, and then only enough to free a part of it.
  @Test func bytesAreBufferedUpToTheLimit() {
    let hasher = MultiStreamHasher(count: 16, size: 1000)
    var packs = (0..<4).map { _ in OpenPack(hasher) }
    for index in packs.indices { packs[index].append([UInt8](repeating: 1, count: 4000)) }
    #expect(hasher.gathered == 16_000)
    packs[0].append([1])
    #expect(hasher.gathered == 13_000)
    for index in packs.indices { packs[index].expectDigest() }
  }

  /// A pack that is dropped at any moment frees its part of the buffer.
  @Test func droppedPackFreesItsBuffer() {
    let hasher = MultiStreamHasher(count: 4, size: 100)
    var other = OpenPack(hasher)
    other.append([1, 2, 3])
    func dropOne() {
      var hash = MultiStreamHasher.Stream(of: hasher)
      hash.append([UInt8](repeating: 2, count: 250))
      #expect(hasher.gathered == 400)
    }
    for _ in 2..<9 { dropOne() }
    #expect(hasher.gathered == 100)
    other.append([4])
    other.expectDigest()
  }

  @Test func singlePackIsHashedAtOnce() {
    var hash = MultiStreamHasher.Stream(of: nil)
    hash.append([1, 2])
    hash.append([3])
    #expect(hash.finish() == Blake2b.hash([1, 2, 3]))
  }
}

/// A pack's hash and all bytes appended to it.
private struct OpenPack {
  private let hash: Box
  private var bytes: [UInt8] = []

  private final class Box {
    var hash: MultiStreamHasher.Stream
    init(_ hash: consuming MultiStreamHasher.Stream) { self.hash = hash }
  }

  init(_ hasher: MultiStreamHasher) { hash = Box(MultiStreamHasher.Stream(of: hasher)) }

  mutating func append(_ more: [UInt8]) {
    bytes += more
    hash.hash.append(more)
  }

  func expectDigest() { #expect(hash.hash.finish() == Blake2b.hash(bytes)) }
}
