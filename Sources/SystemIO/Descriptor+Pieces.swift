internal import CLinux

extension Descriptor {
  /// Goes through the file's first `size` bytes in order: `take` reads a range of at most 256 KiB and
  /// gives how many bytes came; `hole` gets the lengths of holes, which are looked for if `isSparse`.
  /// Gives how many bytes there were, fewer when the file ends before.
  public func takePieces(
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

  /// Reads the file's first `size` bytes in order: gives data in pieces of at most 256 KiB to `data`,
  /// and the lengths of holes, which are looked for if `isSparse`, to `hole`. Gives how many bytes
  /// there were, fewer when the file ends before.
  public func readPieces(
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

  /// Has a range taken; gives where that ended, which is before the range's end when the file does.
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

  /// Makes this file the same as another on the same volume without copying: both share their blocks
  /// until one is written to. False where the file system cannot, or they are on different volumes.
  public func clone(of other: borrowing Descriptor) throws(SystemError) -> Bool {
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
