internal import CLinux
internal import Glibc

/// A range of a file: data, or a hole that reads as zeros and takes no space.
package struct Extent: Hashable, Sendable {
  /// The first byte, from the start of the file.
  package let offset: UInt64
  /// The number of bytes.
  package let length: UInt64
  package let isHole: Bool

  /// Creates an extent.
  package init(offset: UInt64, length: UInt64, isHole: Bool) {
    self.offset = offset
    self.length = length
    self.isHole = isHole
  }
}

extension Descriptor {
  /// Reads from the current offset into `buffer`, from `start` to its end. Returns the number of
  /// bytes read, which is smaller only at the end of the file.
  package func read(into buffer: inout [UInt8], from start: Int = 0) throws(SystemError) -> Int {
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

  /// Returns `count` bytes at `offset`, or fewer at the end of the file.
  package func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    var buffer: [UInt8] = []
    try read(count: count, at: offset, into: &buffer)
    return buffer
  }

  /// Replaces the content of `buffer`, keeping its capacity, with `count` bytes at `offset`, or
  /// fewer at the end of the file.
  package func read(
    count: Int, at offset: UInt64, into buffer: inout [UInt8]
  ) throws(SystemError) {
    buffer.removeAll(keepingCapacity: true)
    try read(count: count, at: offset, appendingTo: &buffer)
  }

  /// Appends `count` bytes at `offset` to a buffer, or fewer at the end of the file.
  package func read(
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

  /// Fills `buffer[start..<end]` from `offset`. Returns the number of bytes read, which is smaller
  /// only at the end of the file.
  package func read(
    into buffer: inout [UInt8], from start: Int, to end: Int, at offset: UInt64
  ) throws(SystemError) -> Int {
    precondition(start >= 0 && start <= end && end <= buffer.count)
    return try unsafe buffer.withUnsafeMutableBufferPointer {
      (bytes: inout UnsafeMutableBufferPointer<UInt8>) throws(SystemError) in
      try unsafe fill(UnsafeMutableRawBufferPointer(bytes)[start..<end], at: offset)
    }
  }

  /// Fills memory from `offset`. Returns the number of bytes read.
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

  /// Returns the whole file, or nil if it has more than `limit` bytes.
  package func readAll(limit: Int) throws(SystemError) -> [UInt8]? {
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

  /// Writes all bytes at the current offset.
  package func write(_ bytes: borrowing [UInt8]) throws(SystemError) {
    try write(bytes, from: 0, to: bytes.count)
  }

  /// Writes `bytes[start..<end]` at the current offset.
  package func write(_ bytes: borrowing [UInt8], from start: Int, to end: Int) throws(SystemError) {
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

  /// Writes all bytes at `offset`. A gap after the end of the file becomes a hole.
  package func write(_ bytes: borrowing [UInt8], at offset: UInt64) throws(SystemError) {
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

  /// Writes all bytes of a span at the current offset.
  package func write(_ span: Span<UInt8>) throws(SystemError) {
    var written = 0
    while written < span.count {
      written += try SystemError.check(.write, name) {
        unsafe span.withUnsafeBytes {
          unsafe cl_write(raw, $0.baseAddress?.advanced(by: written), $0.count - written)
        }
      }
    }
  }

  /// Writes all bytes of a span at `offset`. Does not move the current offset.
  package func write(_ span: Span<UInt8>, at offset: UInt64) throws(SystemError) {
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

  /// Sets the size. An extension is a hole that reads as zeros.
  package func truncate(to size: UInt64) throws(SystemError) {
    _ = try SystemError.check(.truncate, name) { cl_truncate(raw, Int64(clamping: size)) }
  }

  /// Moves the current offset. Skipped bytes at the end of the file become a hole.
  package func seek(to offset: UInt64) throws(SystemError) {
    _ = try SystemError.check(.seek, name) { cl_seek(raw, Int64(clamping: offset)) }
  }

  /// Advises the kernel that the file is read once, sequentially. Errors are ignored.
  package func willReadSequentially() { _ = cl_advise_sequential(raw) }

  /// Advises the kernel to drop the file, or a range of it, from the page cache. Pages that are not
  /// yet on disk stay, so call `sync()` or `endSync(_:)` first. Errors are ignored.
  package func willNotBeReadSoon(_ bytes: Range<UInt64>? = nil) {
    // A length of 0 would mean the rest of the file.
    if let bytes, bytes.isEmpty { return }
    _ = cl_advise_unneeded(
      raw, Int64(clamping: bytes?.lowerBound ?? 0), Int64(clamping: bytes?.count ?? 0))
  }

  /// Returns the data and holes of the file in order, from 0 to `size`, or one data extent if the
  /// file system does not report holes. Moves the current offset.
  package func extents(size: UInt64) throws(SystemError) -> [Extent] {
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
}
