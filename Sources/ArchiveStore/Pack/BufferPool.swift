internal import Synchronization

/// Buffers of frames that are used again: a new one of 4 MiB costs the kernel a thousand page
/// faults.
final class BufferPool: Sendable {
  /// What a buffer has room for; one that has grown past twice this is not kept.
  private let size: Int
  private let capacity: Int
  private let buffers = Mutex<[[UInt8]]>([])

  /// Keeps at most so many buffers that are not in use.
  init(size: Int, capacity: Int) { (self.size, self.capacity) = (size, capacity) }

  /// An empty buffer.
  func take() -> [UInt8] {
    if let buffer = buffers.withLock({ $0.popLast() }) { return buffer }
    var buffer: [UInt8] = []
    buffer.reserveCapacity(size)
    return buffer
  }

  /// Takes a buffer back. Nobody else may still hold it, or it is copied.
  func give(_ buffer: consuming [UInt8]) {
    guard buffer.capacity >= size, buffer.capacity < 2 * size else { return }
    buffer.removeAll(keepingCapacity: true)
    let empty = buffer
    buffers.withLock { if $0.count < capacity { $0.append(empty) } }
  }
}
