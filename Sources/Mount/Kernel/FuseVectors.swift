internal import ArchiveStore
internal import CFuse

/// Parts of a file as vectors for one write: decoded frames are not copied.
enum FuseVectors {
  /// If there are more parts than this, they are copied into one buffer: each needs a stack frame.
  private static let most = 64
  private static let zeros = [UInt8](repeating: 0, count: 64 << 10)

  /// Calls `body` with the vectors of all parts, which are valid only during the call.
  static func send(_ parts: [FilePart], _ body: (UnsafePointer<iovec>?, Int32) -> Void) {
    let pieces = parts.flatMap(cut)
    var vectors: [iovec] = []
    guard pieces.count > most else { return add(pieces[...], to: &vectors, body) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(parts.reduce(0) { $0 + $1.count })
    for part in parts {
      switch part {
      case .bytes(let slice): bytes += slice.frame.bytes[slice.range]
      case .zeros(let count): bytes += repeatElement(0, count: count)
      }
    }
    bytes.withUnsafeBytes { call([vector($0, 0..<$0.count)], body) }
  }

  /// Divides a hole into parts of the size of the shared zeros.
  private static func cut(_ part: FilePart) -> [FilePart] {
    guard case .zeros(let count) = part, count > zeros.count else { return [part] }
    let (whole, rest) = count.quotientAndRemainder(dividingBy: zeros.count)
    return [FilePart](repeating: .zeros(zeros.count), count: whole)
      + (rest > 0 ? [.zeros(rest)] : [])
  }

  private static func add(
    _ parts: ArraySlice<FilePart>, to vectors: inout [iovec],
    _ body: (UnsafePointer<iovec>?, Int32) -> Void
  ) {
    guard let part = parts.first else { return call(vectors, body) }
    let (array, range): ([UInt8], Range<Int>)
    switch part {
    case .bytes(let slice): (array, range) = (slice.frame.bytes, slice.range)
    case .zeros(let count): (array, range) = (zeros, 0..<count)
    }
    array.withUnsafeBytes { bytes in
      vectors.append(vector(bytes, range))
      add(parts.dropFirst(), to: &vectors, body)
    }
  }

  private static func vector(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> iovec {
    let start = bytes.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + range.lowerBound) }
    return iovec(iov_base: start, iov_len: range.count)
  }

  private static func call(
    _ vectors: [iovec], _ body: (UnsafePointer<iovec>?, Int32) -> Void
  ) {
    vectors.withUnsafeBufferPointer { body($0.baseAddress, Int32($0.count)) }
  }
}
