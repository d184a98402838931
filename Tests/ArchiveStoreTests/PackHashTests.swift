import Codecs
import Testing

@testable import ArchiveStore

/// Bytes of several packs that are collected and hashed together.
@Suite struct PackHashTests {
  /// The number and size of portions, also sizes that are no multiple of a block.
  private static let rooms = [(64, 1024), (8, 1000), (5, 128), (2, 77)]

  /// Packs that receive pieces of all sizes in turn, end one after another, and are followed by
  /// others.
  @Test(arguments: rooms) func everyPackHasItsDigest(count: Int, size: Int) {
    var random = SeededBytes(seed: 41)
    let hashes = PackHashes(count: count, size: size)
    for number in 0..<12 {
      var packs = (0..<5).map { OpenPack(number * 10 + $0, hashes) }
      for _ in 0..<40 {
        let most = [2, size + 1, 3 * size, 2 * count * size][random.number(0..<4)]
        packs[random.number(0..<packs.count)].append(random.bytes(random.number(0..<most)))
      }
      for index in packs.indices { packs[index].expectDigest() }
      #expect(hashes.gathered == 0)
    }
  }

  /// No pack has a full portion.
  @Test func morePacksThanPortionsAreHashed() {
    let hashes = PackHashes(count: 4, size: 500)
    var packs = (0..<20).map { OpenPack($0, hashes) }
    for round in 0..<3 {
      for index in packs.indices { packs[index].append([UInt8(index), UInt8(round), 3]) }
    }
    for index in packs.indices { packs[index].expectDigest() }
    #expect(hashes.gathered == 0)
  }

  @Test func emptyPackIsHashed() {
    let hashes = PackHashes(count: 4, size: 500)
    var hash = PackHash(of: 1, with: hashes)
    #expect(hash.finish() == Blake2b.hash([]))
    hash.append([])
    #expect(hash.finish() == Blake2b.hash([]))
  }

  /// Nothing is hashed before the space is used up, and then enough of each pack to free some.
  @Test func bytesAreBufferedUpToTheLimit() {
    let hashes = PackHashes(count: 16, size: 1000)
    var packs = (0..<4).map { OpenPack($0, hashes) }
    for index in packs.indices { packs[index].append([UInt8](repeating: 1, count: 4000)) }
    #expect(hashes.gathered == 16_000)
    packs[0].append([1])
    #expect(hashes.gathered == 13_000)
    for index in packs.indices { packs[index].expectDigest() }
  }

  /// A dropped pack frees its space, however it ends.
  @Test func droppedPackFreesItsBuffer() {
    let hashes = PackHashes(count: 4, size: 100)
    var other = OpenPack(1, hashes)
    other.append([1, 2, 3])
    func dropOne(_ number: Int) {
      var hash = PackHash(of: number, with: hashes)
      hash.append([UInt8](repeating: 2, count: 250))
      #expect(hashes.gathered == 400)
    }
    for number in 2..<9 { dropOne(number) }
    #expect(hashes.gathered == 100)
    other.append([4])
    other.expectDigest()
  }

  @Test func singlePackIsHashedAtOnce() {
    var hash = PackHash(of: 1, with: nil)
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
    var hash: PackHash
    init(_ hash: consuming PackHash) { self.hash = hash }
  }

  init(_ number: Int, _ hashes: PackHashes) { hash = Box(PackHash(of: number, with: hashes)) }

  mutating func append(_ more: [UInt8]) {
    bytes += more
    hash.hash.append(more)
  }

  func expectDigest() { #expect(hash.hash.finish() == Blake2b.hash(bytes)) }
}
