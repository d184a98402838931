internal import CLinux

extension Descriptor {
  /// Visits the file's first `size` bytes in order. `take` reads a range of at most 256 KiB and
  /// returns the number of bytes read; `hole` receives the lengths of holes, which are detected if
  /// `isSparse`. Returns the number of bytes visited, which is smaller only if the file ends
  /// before.
  package func takePieces(
    size: UInt64, isSparse: Bool, take: (Range<UInt64>) throws -> Int,
    hole: (UInt64) throws -> Void
  ) throws -> UInt64 {
    let extents =
      isSparse
      ? try self.extents(size: size) : [Extent(offset: 0, length: size, isHole: false)]
    for extent in extents {
      if extent.isHole {
        try hole(extent.length)
        continue
      }
      let end = extent.offset + extent.length
      let reached = try Self.take(extent.offset..<end, take)
      if reached < end { return reached }
    }
    return size
  }

  /// Reads the file's first `size` bytes in order. `data` receives at most 256 KiB at a time;
  /// `hole` receives the lengths of holes, which are detected if `isSparse`. Returns the number of
  /// bytes read, which is smaller only if the file ends before.
  package func readPieces(
    size: UInt64, isSparse: Bool, data: (Span<UInt8>) throws -> Void,
    hole: (UInt64) throws -> Void
  ) throws -> UInt64 {
    var buffer: [UInt8] = []
    return try takePieces(
      size: size, isSparse: isSparse,
      take: { range in
        try read(count: range.count, at: range.lowerBound, into: &buffer)
        if !buffer.isEmpty { try data(buffer.span) }
        return buffer.count
      }, hole: hole)
  }

  private static let pieceSize: UInt64 = 256 << 10

  /// Reads a range in pieces. Returns the end of the last piece, which is before the range's end if
  /// the file is shorter.
  private static func take(
    _ range: Range<UInt64>, _ take: (Range<UInt64>) throws -> Int
  ) throws -> UInt64 {
    var at = range.lowerBound
    while at < range.upperBound {
      let piece = at..<min(range.upperBound, at + pieceSize)
      let count = try take(piece)
      at += UInt64(count)
      if count < piece.count { break }
    }
    return at
  }

  /// Clones another file of the same volume: both share their blocks until one is changed. Returns
  /// false if the file system does not support it or the files are on different volumes.
  package func clone(of other: borrowing Descriptor) throws(SystemError) -> Bool {
    let from = other.raw
    do {
      _ = try SystemError.check(.clone, name) { cl_clone(raw, from) }
      return true
    } catch {
      if error.isUnsupported || error.isOnAnotherVolume { return false }
      throw error
    }
  }
}
