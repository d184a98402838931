internal import Synchronization

/// Buffers of frames that are used again: a new one of 4 MiB costs the kernel a thousand page
/// faults.
final class BufferPool: Sendable {
  /// What buffers have room for, the smallest first.
  private let sizes: [Int]
  private let capacity: Int
  /// Buffers that are not in use, those of each size.
  private let buffers: Mutex<[[[UInt8]]]>

  /// Keeps at most so many buffers of each size that are not in use.
  init(sizes: [Int], capacity: Int) {
    self.sizes = sizes.sorted()
    self.capacity = capacity
    buffers = Mutex([[[UInt8]]](repeating: [], count: sizes.count))
  }

  /// An empty buffer with room for so many bytes.
  func take(_ count: Int) -> [UInt8] {
    let number = sizes.firstIndex { $0 >= count }
    if let number, let buffer = buffers.withLock({ $0[number].popLast() }) { return buffer }
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
    buffers.withLock { if $0[number].count < capacity { $0[number].append(empty) } }
  }
}
