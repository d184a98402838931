import Testing

@testable import ArchiveStore

struct BufferPoolTests {
  private static let (small, large, capacity) = (1 << 20, 4 << 20, 9 << 20)
  private let pool = BufferPool(sizes: [small, large], capacity: capacity)

  private func acquire(_ number: Int, _ size: Int) -> [[UInt8]] {
    (0..<number).map { _ in pool.acquire(size) }
  }

  /// Releases buffers that have no other references.
  private func release(_ buffers: consuming [[UInt8]]) {
    while let buffer = buffers.popLast() { pool.release(buffer) }
  }

  /// Returns the addresses of the buffers' bytes.
  private func addresses(_ buffers: borrowing [[UInt8]]) -> Set<Int> {
    var locations: Set<Int> = []
    for index in buffers.indices {
      locations.insert(buffers[index].withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) })
    }
    return locations
  }

  @Test func bufferIsReused() {
    var buffers = acquire(1, Self.small - 100)
    #expect(buffers[0].capacity >= Self.small)
    buffers[0].append(contentsOf: [1, 2, 3])
    let before = addresses(buffers)
    release(consume buffers)
    let again = acquire(1, Self.small)
    #expect(addresses(again) == before && again[0].isEmpty && pool.keptBytes == 0)
  }

  @Test func poolKeepsNoMoreThanItsLimit() {
    release(acquire(4, Self.large))
    #expect(pool.keptBytes >= 2 * Self.large && pool.keptBytes <= Self.capacity)
    pool.release([UInt8](repeating: 0, count: 2 * Self.large + 1))
    #expect(pool.keptBytes <= Self.capacity)
  }

  /// Later work may need buffers of other sizes.
  @Test func buffersOfOtherSizesAreReplaced() {
    release(acquire(2, Self.large))
    let small = acquire(6, Self.small)
    let before = addresses(small)
    release(consume small)
    #expect(pool.keptBytes <= Self.capacity)
    #expect(addresses(acquire(6, Self.small)) == before)
  }
}
