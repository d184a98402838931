internal import Synchronization

/// Reusable buffers for frames. A new buffer of 4 MiB costs about a thousand page faults.
final class BufferPool: Sendable {
  /// The capacities of the buffers, the smallest first.
  private let sizes: [Int]
  /// The maximum total capacity of unused buffers, in bytes.
  private let capacity: Int
  private let state: Mutex<State>

  private struct State {
    /// The unused buffers of each size.
    var buffers: [[[UInt8]]]
    /// The total capacity of the unused buffers.
    var kept = 0

    mutating func take(_ number: Int) -> [UInt8]? {
      guard let buffer = buffers[number].popLast() else { return nil }
      kept -= buffer.capacity
      return buffer
    }

    /// Keeps a buffer and, if necessary, drops unused buffers of other sizes, which earlier content
    /// needed.
    mutating func keep(_ buffer: [UInt8], _ number: Int, atMost capacity: Int) {
      let room = buffer.capacity
      for other in buffers.indices.reversed() where other != number {
        while kept + room > capacity, take(other) != nil {}
      }
      guard kept + room <= capacity else { return }
      kept += room
      buffers[number].append(buffer)
    }
  }

  /// Creates a pool that keeps at most `capacity` bytes of unused buffers.
  init(sizes: [Int], capacity: Int) {
    self.sizes = sizes.sorted()
    self.capacity = capacity
    state = Mutex(State(buffers: [[[UInt8]]](repeating: [], count: sizes.count)))
  }

  /// The total capacity of the unused buffers, in bytes.
  var keptBytes: Int { state.withLock { $0.kept } }

  /// Returns an empty buffer with a capacity of at least `count` bytes.
  func take(_ count: Int) -> [UInt8] {
    let number = sizes.firstIndex { $0 >= count }
    if let number, let buffer = state.withLock({ $0.take(number) }) { return buffer }
    var buffer: [UInt8] = []
    buffer.reserveCapacity(number.map { sizes[$0] } ?? count)
    return buffer
  }

  /// Returns a buffer to the pool. The caller must hold the only reference, otherwise the buffer is
  /// copied. A buffer that has grown to twice the largest size or more is dropped.
  func give(_ buffer: consuming [UInt8]) {
    let room = buffer.capacity
    guard let number = sizes.lastIndex(where: { $0 <= room }), room < 2 * sizes[sizes.count - 1]
    else { return }
    buffer.removeAll(keepingCapacity: true)
    let empty = buffer
    state.withLock { $0.keep(empty, number, atMost: capacity) }
  }
}
