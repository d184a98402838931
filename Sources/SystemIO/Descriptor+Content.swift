internal import CLinux
internal import Glibc

/// A run of bytes in a file: data, or a hole that reads as zeros and takes no space.
public struct Extent: Hashable, Sendable {
  /// First byte, counted from the start of the file.
  public let offset: UInt64
  /// Bytes.
  public let length: UInt64
  public let isHole: Bool

  /// Makes an extent.
  public init(offset: UInt64, length: UInt64, isHole: Bool) {
    self.offset = offset
    self.length = length
    self.isHole = isHole
  }
}

extension Descriptor {
  /// Reads from where the last read ended, filling `buffer` from `start` on; gives how many bytes
  /// came, less than asked for only at the end of the file.
  public func read(into buffer: inout [UInt8], from start: Int = 0) throws(SystemError) -> Int {
    var filled = start
    while filled < buffer.count {
      let count = try SystemError.check(.read, name) {
        unsafe buffer.withUnsafeMutableBytes {
          unsafe cl_read(raw, $0.baseAddress?.advanced(by: filled), $0.count - filled)
        }
      }
      if count == 0 { break }
      filled += count
    }
    return filled - start
  }

  /// Reads `count` bytes at `offset`; gives fewer only where the file ends.
  public func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    var buffer: [UInt8] = []
    try read(count: count, at: offset, into: &buffer)
    return buffer
  }

  /// Puts `count` bytes at `offset` in the place of what a buffer has, of which only the room is used
  /// again; fewer only where the file ends.
  public func read(
    count: Int, at offset: UInt64, into buffer: inout [UInt8]
  ) throws(SystemError) {
    buffer.removeAll(keepingCapacity: true)
    try read(count: count, at: offset, appendingTo: &buffer)
  }

  /// Appends `count` bytes at `offset` to a buffer; fewer only where the file ends.
  public func read(
    count: Int, at offset: UInt64, appendingTo buffer: inout [UInt8]
  ) throws(SystemError) {
    try buffer.append(addingCapacity: count) {
      (output: inout OutputSpan<UInt8>) throws(SystemError) in
      try unsafe output.withUnsafeMutableBufferPointer {
        (target: UnsafeMutableBufferPointer<UInt8>, filled: inout Int) throws(SystemError) in
        filled = try unsafe fill(UnsafeMutableRawBufferPointer(target).prefix(count), at: offset)
      }
    }
  }

  /// Fills `buffer[start..<end]` from the file's byte `offset` on; gives how many bytes came, fewer
  /// only where the file ends.
  public func read(
    into buffer: inout [UInt8], from start: Int, to end: Int, at offset: UInt64
  ) throws(SystemError) -> Int {
    precondition(start >= 0 && start <= end && end <= buffer.count)
    return try unsafe buffer.withUnsafeMutableBufferPointer {
      (bytes: inout UnsafeMutableBufferPointer<UInt8>) throws(SystemError) in
      try unsafe fill(UnsafeMutableRawBufferPointer(bytes)[start..<end], at: offset)
    }
  }

  /// Fills memory from the file's byte `offset` on; gives how many bytes came.
  private func fill(
    _ target: Slice<UnsafeMutableRawBufferPointer>, at offset: UInt64
  ) throws(SystemError) -> Int {
    let target = unsafe UnsafeMutableRawBufferPointer(rebasing: target)
    var filled = 0
    while filled < target.count {
      let rest = target.count - filled
      let wanted = Faults.areArmed ? Faults.portion(of: rest) : rest
      let count = try SystemError.check(.read, name) {
        unsafe cl_pread(
          raw, target.baseAddress?.advanced(by: filled), wanted,
          Int64(clamping: offset) + Int64(filled))
      }
      if Faults.areArmed { Faults.pauseAfterReading() }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Reads the whole file if it has at most `limit` bytes; gives nil when it has more.
  public func readAll(limit: Int) throws(SystemError) -> [UInt8]? {
    let size = try status().size
    if size > UInt64(limit) { return nil }
    let bytes = try read(count: Int(size) + 1, at: 0)
    guard bytes.count > Int(size) else { return bytes }
    var all = [UInt8](repeating: 0, count: limit + 1)
    let count = try read(into: &all, from: 0, to: limit + 1, at: 0)
    if count > limit { return nil }
    all.removeLast(all.count - count)
    return all
  }

  /// Writes all bytes behind those written before.
  public func write(_ bytes: borrowing [UInt8]) throws(SystemError) {
    try write(bytes, from: 0, to: bytes.count)
  }

  /// Writes `bytes[start..<end]` behind what was written before.
  public func write(_ bytes: borrowing [UInt8], from start: Int, to end: Int) throws(SystemError) {
    precondition(start >= 0 && start <= end && end <= bytes.count)
    var written = start
    while written < end {
      written += try SystemError.check(.write, name) {
        unsafe bytes.withUnsafeBytes {
          unsafe cl_write(raw, $0.baseAddress?.advanced(by: written), end - written)
        }
      }
    }
  }

  /// Writes all bytes from the file's byte `offset` on; where the file ends before, a hole is left.
  public func write(_ bytes: borrowing [UInt8], at offset: UInt64) throws(SystemError) {
    var written = 0
    while written < bytes.count {
      written += try SystemError.check(.write, name) {
        unsafe bytes.withUnsafeBytes {
          unsafe cl_pwrite(
            raw, $0.baseAddress?.advanced(by: written), $0.count - written,
            Int64(clamping: offset) + Int64(written))
        }
      }
    }
  }

  /// Writes all bytes of a span behind those written before.
  public func write(_ span: Span<UInt8>) throws(SystemError) {
    var written = 0
    while written < span.count {
      written += try SystemError.check(.write, name) {
        unsafe span.withUnsafeBytes {
          unsafe cl_write(raw, $0.baseAddress?.advanced(by: written), $0.count - written)
        }
      }
    }
  }

  /// Writes all bytes of a span at `offset`; the place of the next `write` stays where it is.
  public func write(_ span: Span<UInt8>, at offset: UInt64) throws(SystemError) {
    var written = 0
    while written < span.count {
      written += try SystemError.check(.write, name) {
        unsafe span.withUnsafeBytes {
          unsafe cl_pwrite(
            raw, $0.baseAddress?.advanced(by: written), $0.count - written,
            Int64(clamping: offset) + Int64(written))
        }
      }
    }
  }

  /// Sets the size; what is new reads as zeros and is a hole.
  public func truncate(to size: UInt64) throws(SystemError) {
    _ = try SystemError.check(.truncate, name) { cl_truncate(raw, Int64(clamping: size)) }
  }

  /// Moves the place of the next `write`, so that the bytes passed over stay a hole.
  public func seek(to offset: UInt64) throws(SystemError) {
    _ = try SystemError.check(.seek, name) { cl_seek(raw, Int64(clamping: offset)) }
  }

  /// Tells the kernel that the file is read once from start to end. Advice only: no error.
  public func willReadSequentially() { _ = cl_advise_sequential(raw) }

  /// Tells the kernel that nobody will read the file, or a range of it, soon: what of that is on the
  /// disk leaves the memory. What is not there yet stays, so `sync()` or `endSync(_:)` comes first.
  /// Advice only: no error.
  public func willNotBeReadSoon(_ bytes: Range<UInt64>? = nil) {
    // A count of 0 means all that follows.
    if let bytes, bytes.isEmpty { return }
    _ = cl_advise_unneeded(
      raw, Int64(clamping: bytes?.lowerBound ?? 0), Int64(clamping: bytes?.count ?? 0))
  }

  /// The file's data and holes in order, from byte 0 to `size`, where the file system tells them;
  /// else one extent of data. The place of the next `read(into:)` is moved.
  public func extents(size: UInt64) throws(SystemError) -> [Extent] {
    let whole = [Extent(offset: 0, length: size, isHole: false)]
    guard try areHolesTold() else { return whole }
    var extents: [Extent] = []
    var at: UInt64 = 0
    while at < size {
      guard let data = try next(from: at, end: size, cl_next_data) else { return whole }
      if data > at { extents.append(Extent(offset: at, length: data - at, isHole: true)) }
      if data >= size { break }
      let hole = try next(from: data, end: size, cl_next_hole) ?? size
      // The data at `data` may have been punched out since: then there is none to tell of.
      if hole == data { continue }
      extents.append(Extent(offset: data, length: hole - data, isHole: false))
      at = hole
    }
    return extents
  }

  /// Whether SEEK_HOLE tells of holes alone. OpenZFS up to 2.2.1 takes what is not on the disk yet for
  /// holes (openzfs/zfs#15526): there everything is read.
  private func areHolesTold() throws(SystemError) -> Bool {
    if Faults.areArmed, let magic = Faults.fileSystem() { return cl_tells_holes_of(magic) != 0 }
    return try SystemError.check(.space, name) { cl_tells_holes(raw) } != 0
  }

  /// Where the next data or hole begins, `end` when there is none, nil where it cannot be asked.
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
}
