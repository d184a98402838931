internal import Synchronization

/// Buffers of frames that are used again: a new one of 4 MiB costs the kernel a thousand page
/// faults.
final class BufferPool: Sendable {
  /// What buffers have room for, the smallest first.
  private let sizes: [Int]
  /// How many bytes are kept for later.
  private let capacity: Int
  private let state: Mutex<State>

  private struct State {
    /// Buffers that are not in use, those of each size.
    var buffers: [[[UInt8]]]
    /// What they have room for together.
    var kept = 0

    mutating func take(_ number: Int) -> [UInt8]? {
      guard let buffer = buffers[number].popLast() else { return nil }
      kept -= buffer.capacity
      return buffer
    }

    /// Keeps a buffer, if need be in the place of buffers of other sizes: what was stored first may
    /// have needed those, and what is stored now does not.
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

  /// Keeps at most so many bytes of buffers that are not in use.
  init(sizes: [Int], capacity: Int) {
    self.sizes = sizes.sorted()
    self.capacity = capacity
    state = Mutex(State(buffers: [[[UInt8]]](repeating: [], count: sizes.count)))
  }

  /// How many bytes the buffers that are not in use have room for.
  var keptBytes: Int { state.withLock { $0.kept } }

  /// An empty buffer with room for so many bytes.
  func take(_ count: Int) -> [UInt8] {
    let number = sizes.firstIndex { $0 >= count }
    if let number, let buffer = state.withLock({ $0.take(number) }) { return buffer }
    var buffer: [UInt8] = []
    buffer.reserveCapacity(number.map { sizes[$0] } ?? count)
    return buffer
  }

  /// Takes a buffer back. Nobody else may still hold it, or it is copied. One that has grown past
  /// twice the largest size is not kept.
  func give(_ buffer: consuming [UInt8]) {
    let room = buffer.capacity
    guard let number = sizes.lastIndex(where: { $0 <= room }), room < 2 * sizes[sizes.count - 1]
    else { return }
    buffer.removeAll(keepingCapacity: true)
    let empty = buffer
    state.withLock { $0.keep(empty, number, atMost: capacity) }
  }
}
