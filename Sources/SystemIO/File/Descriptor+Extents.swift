internal import CLinux
internal import Glibc

/// A range of a file: data, or a hole that reads as zeros and takes no space.
public struct Extent: Hashable, Sendable {
  /// The first byte, from the start of the file.
  public let offset: UInt64
  /// The number of bytes.
  public let length: UInt64
  public let isHole: Bool

  /// Creates an extent.
  public init(offset: UInt64, length: UInt64, isHole: Bool) {
    self.offset = offset
    self.length = length
    self.isHole = isHole
  }
}

extension Descriptor {
  /// Returns the data and holes of the file in order, from 0 to `size`, or one data extent if the
  /// file system does not report holes. Moves the current offset.
  public func extents(size: UInt64) throws(SystemError) -> [Extent] {
    let whole = [Extent(offset: 0, length: size, isHole: false)]
    guard try reportsHoles() else { return whole }
    var extents: [Extent] = []
    var at: UInt64 = 0
    while at < size {
      guard let data = try next(from: at, end: size, cl_next_data) else { return whole }
      if data > at { extents.append(Extent(offset: at, length: data - at, isHole: true)) }
      if data >= size { break }
      let hole = try next(from: data, end: size, cl_next_hole) ?? size
      // The data at `data` may have been punched out in the meantime.
      if hole == data { continue }
      extents.append(Extent(offset: data, length: hole - data, isHole: false))
      at = hole
    }
    return extents
  }

  /// Whether SEEK_HOLE reports only real holes. OpenZFS up to 2.2.1 reports data that is not yet on
  /// disk as holes (openzfs/zfs#15526); everything is read there.
  private func reportsHoles() throws(SystemError) -> Bool {
    if Faults.areArmed, let magic = Faults.fileSystem() { return cl_reports_holes_of(magic) != 0 }
    return try SystemError.check(.space, name) { cl_reports_holes(raw) } != 0
  }

  /// Returns the offset of the next data or hole, `end` if there is none, or nil if the file system
  /// cannot report it.
  private func next(
    from offset: UInt64, end: UInt64, _ call: (Int32, Int64) -> Int
  ) throws(SystemError) -> UInt64? {
    do {
      let found = try SystemError.check(.seek, name) { call(raw, Int64(clamping: offset)) }
      return min(UInt64(found), end)
    } catch {
      if error.number == ENXIO { return end }
      if error.isUnsupported { return nil }
      throw error
    }
  }

  /// Visits the file's first `size` bytes in order. `data` reads a range of at most 256 KiB and
  /// returns the number of bytes read; `hole` receives the lengths of holes, which are detected if
  /// `isSparse`. Returns the number of bytes visited, which is smaller only if the file ends
  /// before.
  public func readExtents(
    size: UInt64, isSparse: Bool, data: (Range<UInt64>) throws -> Int,
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
      let reached = try Self.readPieces(extent.offset..<end, data)
      if reached < end { return reached }
    }
    return size
  }

  /// Reads the file's first `size` bytes in order. `data` receives at most 256 KiB at a time;
  /// `hole` receives the lengths of holes, which are detected if `isSparse`. Returns the number of
  /// bytes read, which is smaller only if the file ends before.
  public func readPieces(
    size: UInt64, isSparse: Bool, data: (Span<UInt8>) throws -> Void,
    hole: (UInt64) throws -> Void
  ) throws -> UInt64 {
    var buffer: [UInt8] = []
    return try readExtents(
      size: size, isSparse: isSparse,
      data: { range in
        try read(count: range.count, at: range.lowerBound, into: &buffer)
        if !buffer.isEmpty { try data(buffer.span) }
        return buffer.count
      }, hole: hole)
  }

  private static let pieceSize: UInt64 = 256 << 10

  /// Reads a range in pieces. Returns the end of the last piece, which is before the range's end if
  /// the file is shorter.
  private static func readPieces(
    _ range: Range<UInt64>, _ data: (Range<UInt64>) throws -> Int
  ) throws -> UInt64 {
    var at = range.lowerBound
    while at < range.upperBound {
      let piece = at..<min(range.upperBound, at + pieceSize)
      let count = try data(piece)
      at += UInt64(count)
      if count < piece.count { break }
    }
    return at
  }
}
