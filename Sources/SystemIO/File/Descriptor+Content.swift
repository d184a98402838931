internal import CLinux

extension Descriptor {
  /// Reads from the current offset into `buffer`, from `start` to its end. Returns the number of
  /// bytes read, which is smaller only at the end of the file.
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

  /// Returns `count` bytes at `offset`, or fewer at the end of the file.
  public func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    var buffer: [UInt8] = []
    try read(count: count, at: offset, into: &buffer)
    return buffer
  }

  /// Replaces the content of `buffer`, keeping its capacity, with `count` bytes at `offset`, or
  /// fewer at the end of the file.
  public func read(
    count: Int, at offset: UInt64, into buffer: inout [UInt8]
  ) throws(SystemError) {
    buffer.removeAll(keepingCapacity: true)
    try read(count: count, at: offset, appendingTo: &buffer)
  }

  /// Appends `count` bytes at `offset` to a buffer, or fewer at the end of the file.
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

  /// Fills `buffer[start..<end]` from `offset`. Returns the number of bytes read, which is smaller
  /// only at the end of the file.
  public func read(
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

  /// Writes all bytes at the current offset.
  public func write(_ bytes: borrowing [UInt8]) throws(SystemError) {
    try write(bytes, from: 0, to: bytes.count)
  }

  /// Writes `bytes[start..<end]` at the current offset.
  public func write(_ bytes: borrowing [UInt8], from start: Int, to end: Int) throws(SystemError) {
    precondition(start >= 0 && start <= end && end <= bytes.count)
    try write(bytes.span.extracting(start..<end))
  }

  /// Writes all bytes at `offset`. A gap after the end of the file becomes a hole.
  public func write(_ bytes: borrowing [UInt8], at offset: UInt64) throws(SystemError) {
    try write(bytes.span, at: offset)
  }

  /// Writes all bytes of a span at the current offset.
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

  /// Writes all bytes of a span at `offset`. Does not move the current offset.
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

  /// Sets the size. An extension is a hole that reads as zeros.
  public func truncate(to size: UInt64) throws(SystemError) {
    _ = try SystemError.check(.truncate, name) { cl_truncate(raw, Int64(clamping: size)) }
  }

  /// Moves the current offset. Skipped bytes at the end of the file become a hole.
  public func seek(to offset: UInt64) throws(SystemError) {
    _ = try SystemError.check(.seek, name) { cl_seek(raw, Int64(clamping: offset)) }
  }

  /// Advises the kernel to drop the file, or a range of it, from the page cache. Pages that are not
  /// yet on disk stay, so call `sync()` or `endSync(_:)` first. Errors are ignored.
  public func willNotBeReadSoon(_ bytes: Range<UInt64>? = nil) {
    // A length of 0 would mean the rest of the file.
    if let bytes, bytes.isEmpty { return }
    _ = cl_advise_unneeded(
      raw, Int64(clamping: bytes?.lowerBound ?? 0), Int64(clamping: bytes?.count ?? 0))
  }

  /// Clones another file of the same volume: both share their blocks until one is changed. Returns
  /// false if that is impossible, now or ever, and the file must be copied: the file system does not
  /// support it, or not for this file (Btrfs: EINVAL for one without copy on write), or not while
  /// its blocks are being written (OpenZFS: EAGAIN), or the files are on different volumes.
  ///
  /// - Throws: an error only if the device or the file system has lost the data.
  public func clone(of other: borrowing Descriptor) throws(SystemError) -> Bool {
    let from = other.raw
    do {
      _ = try SystemError.check(.clone, name) { cl_clone(raw, from) }
      return true
    } catch {
      if error.isLoss { throw error }
      return false
    }
  }
}
