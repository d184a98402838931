internal import CLinux

extension Descriptor {
  /// Reads the file's first `size` bytes in order: gives data in pieces of at most 256 KiB to `data`,
  /// and the lengths of holes, which are looked for if `isSparse`, to `hole`. Gives how many bytes
  /// there were, fewer when the file ends before.
  public func readPieces(
    size: UInt64, isSparse: Bool, data: (Span<UInt8>) throws -> Void,
    hole: (UInt64) throws -> Void
  ) throws -> UInt64 {
    let extents =
      isSparse
      ? try self.extents(size: size) : [Extent(offset: 0, length: size, isHole: false)]
    var buffer = [UInt8](repeating: 0, count: Int(min(size, 256 << 10)))
    for extent in extents {
      if extent.isHole {
        try hole(extent.length)
        continue
      }
      let end = extent.offset + extent.length
      let reached = try read(extent.offset..<end, through: &buffer, data)
      if reached < end { return reached }
    }
    return size
  }

  /// Reads a range through a buffer; gives where it ended, which is before the range's end when the
  /// file does.
  private func read(
    _ range: Range<UInt64>, through buffer: inout [UInt8], _ data: (Span<UInt8>) throws -> Void
  ) throws -> UInt64 {
    var at = range.lowerBound
    while at < range.upperBound {
      let wanted = Int(min(range.upperBound - at, UInt64(buffer.count)))
      let count = try read(into: &buffer, from: 0, to: wanted, at: at)
      if count > 0 { try data(buffer.span.extracting(0..<count)) }
      at += UInt64(count)
      if count < wanted { break }
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
