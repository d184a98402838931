import Testing

@testable import ArchiveStore

@Suite struct BufferPoolTests {
  private static let (small, large, capacity) = (1 << 20, 4 << 20, 9 << 20)
  private let pool = BufferPool(sizes: [small, large], capacity: capacity)

  private func take(_ number: Int, _ size: Int) -> [[UInt8]] {
    (0..<number).map { _ in pool.take(size) }
  }

  /// Returns buffers without other references to the pool.
  private func give(_ buffers: consuming [[UInt8]]) {
    while let buffer = buffers.popLast() { pool.give(buffer) }
  }

  /// Returns the addresses of the buffers' bytes.
  private func places(_ buffers: borrowing [[UInt8]]) -> Set<Int> {
    var places: Set<Int> = []
    for index in buffers.indices {
      places.insert(buffers[index].withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) })
    }
    return places
  }

  @Test func bufferIsReused() {
    var buffers = take(1, Self.small - 100)
    #expect(buffers[0].capacity >= Self.small)
    buffers[0].append(contentsOf: [1, 2, 3])
    let before = places(buffers)
    give(consume buffers)
    let again = take(1, Self.small)
    #expect(places(again) == before && again[0].isEmpty && pool.keptBytes == 0)
  }

  @Test func poolKeepsNoMoreThanItsLimit() {
    give(take(4, Self.large))
    #expect(pool.keptBytes >= 2 * Self.large && pool.keptBytes <= Self.capacity)
    pool.give([UInt8](repeating: 0, count: 2 * Self.large + 1))
    #expect(pool.keptBytes <= Self.capacity)
  }

  /// Later work may need buffers of other sizes.
  @Test func buffersOfOtherSizesAreReplaced() {
    give(take(2, Self.large))
    let small = take(6, Self.small)
    let before = places(small)
    give(consume small)
    #expect(pool.keptBytes <= Self.capacity)
    #expect(places(take(6, Self.small)) == before)
  }
}
