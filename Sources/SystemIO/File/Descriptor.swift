internal import CLinux
internal import Glibc

/// An open file, closed at the end of the value's lifetime.
///
/// Errors name the file by `name`, which is given when the file is opened.
public struct Descriptor: ~Copyable, Sendable {
  /// The descriptor, or -1 once it is closed.
  private(set) var raw: Int32
  /// The name in error messages.
  public let name: ByteString

  init(adopting raw: Int32, name: ByteString) {
    self.raw = raw
    self.name = name
  }

  deinit { if raw >= 0 { _ = cl_close(raw) } }

  /// Opens the regular file at a path. The last component may be a symbolic link; below directories
  /// that other users can write to, use `Directory` instead.
  ///
  /// Other kinds of files are refused.
  ///
  /// - Parameter allowsFIFO: whether the file may be a FIFO, such as the pipe of a process
  ///   substitution. It must be read by `readAvailable`, which waits for the first writer; other
  ///   reads do not.
  public static func open(
    path: ByteString, allowsFIFO: Bool = false
  ) throws(SystemError) -> Descriptor {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
    let raw = try SystemError.check(.open, path) {
      unsafe path.withCString { unsafe cl_open(AT_FDCWD, $0, flags, 0) }
    }
    let file = Descriptor(adopting: Int32(raw), name: path)
    switch try file.status().kind {
    case .file: return file
    case .fifo where allowsFIFO: return file
    case .directory: throw SystemError(.open, path, number: EISDIR)
    default: throw SystemError(.open, path, number: ESPIPE)
    }
  }

  /// Returns a descriptor of standard input, for reading a stream of any length.
  public static func standardInput() throws(SystemError) -> Descriptor {
    let name: ByteString = "standard input"
    let copy = try SystemError.check(.open, name) { cl_duplicate(0) }
    return Descriptor(adopting: Int32(copy), name: name)
  }

  /// Creates an anonymous file in memory, which is deleted when it is closed.
  public static func inMemory(_ bytes: [UInt8]) throws(SystemError) -> Descriptor {
    let name: ByteString = "memory"
    let raw = try SystemError.check(.create, name) {
      unsafe name.withCString { unsafe cl_memory_file($0) }
    }
    let file = Descriptor(adopting: Int32(raw), name: name)
    try file.write(bytes)
    return file
  }

  /// Closes the file and reports errors that occur only then, as on network file systems.
  public consuming func close() throws(SystemError) {
    let result = cl_close(raw)
    raw = -1
    _ = try SystemError.check(.close, name) { result }
  }

  /// Returns a second descriptor of the same open file (dup(2)).
  public func duplicate() throws(SystemError) -> Descriptor {
    let copy = try SystemError.check(.open, name) { cl_duplicate(raw) }
    return Descriptor(adopting: Int32(copy), name: name)
  }

  /// Gives up a descriptor that is owned elsewhere, without closing it.
  consuming func release() { raw = -1 }

  /// Returns the status of the open file.
  public func status() throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try SystemError.check(.status, name) { unsafe cl_stat_open(raw, &status) }
    return FileStatus(status)
  }

  /// Makes written data durable. After a failure, do not sync the same descriptor again: the kernel
  /// may have dropped the pages, and a second call would report success.
  public func sync() throws(SystemError) {
    _ = try SystemError.check(.sync, name) { Faults.skipsSyncs ? 0 : cl_fsync(raw) }
  }

  /// Starts writing a range of the file to disk, which shortens a later `sync()` or `syncVolume()`.
  /// Does not wait and makes nothing durable. Has no effect if the system lacks sync_file_range(2).
  public func beginSync(_ bytes: Range<UInt64>) throws(SystemError) {
    try syncRange(bytes, by: cl_begin_sync)
  }

  /// Waits until a range of the file is written to disk. This does not make it durable: metadata
  /// may be missing, and `sync()` or `syncVolume()` is still required. Has no effect if the system
  /// lacks sync_file_range(2) or the file system ignores it, as overlayfs does.
  public func endSync(_ bytes: Range<UInt64>) throws(SystemError) {
    try syncRange(bytes, by: cl_end_sync)
  }

  private func syncRange(
    _ bytes: Range<UInt64>, by call: (Int32, Int64, Int64) -> Int
  ) throws(SystemError) {
    // A length of 0 would mean the rest of the file.
    if bytes.isEmpty { return }
    do {
      _ = try SystemError.check(.sync, name) {
        if Faults.skipsSyncs { return 0 }
        return call(raw, Int64(clamping: bytes.lowerBound), Int64(clamping: bytes.count))
      }
    } catch {
      if !error.isUnsupported { throw error }
    }
  }

  /// Makes all data written to the file's volume durable.
  public func syncVolume() throws(SystemError) {
    _ = try SystemError.check(.sync, name) { Faults.skipsSyncs ? 0 : cl_syncfs(raw) }
  }
}

// MARK: - Locks

/// Locks on byte ranges of a file (`F_OFD_SETLK`, fcntl(2)).
///
/// They conflict with POSIX locks of other processes and of this one. They belong to the open file
/// description: closing another descriptor of the same file does not release them, closing this one
/// does.
extension Descriptor {
  /// Acquires a shared lock. Returns false if another process holds an exclusive lock on any of the
  /// bytes. The file must be open for reading.
  public func lockShared(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
    do {
      try setLock(F_RDLCK, bytes)
      return true
    } catch {
      if error.isBusy || error.number == EACCES { return false }
      throw error
    }
  }

  /// Releases a lock.
  public func unlock(_ bytes: Range<UInt64>) throws(SystemError) { try setLock(F_UNLCK, bytes) }

  /// Releases all locks of this open file before it is closed. A child process that another thread
  /// is starting still has a copy of the descriptor, which would keep the locks until it calls
  /// exec. Errors are ignored because closing the file follows.
  public func unlockAll() { _ = cl_lock_range(raw, F_UNLCK, 0, 0) }

  /// Whether a lock of any kind on any of the bytes is held, other than by this open file.
  public func isLockedElsewhere(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
    try isLocked(bytes, against: F_WRLCK)
  }

  /// Whether an exclusive lock on any of the bytes is held, other than by this open file.
  public func isLockedForWritingElsewhere(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
    try isLocked(bytes, against: F_RDLCK)
  }

  private func isLocked(_ bytes: Range<UInt64>, against type: Int32) throws(SystemError) -> Bool {
    try SystemError.check(.lock, name) {
      cl_range_is_locked(
        raw, type, Int64(clamping: bytes.lowerBound), Int64(clamping: bytes.count))
    } != 0
  }

  private func setLock(_ type: Int32, _ bytes: Range<UInt64>) throws(SystemError) {
    _ = try SystemError.check(.lock, name) {
      cl_lock_range(
        raw, type, Int64(clamping: bytes.lowerBound), Int64(clamping: bytes.count))
    }
  }
}

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

  /// Waits until a stream has bytes or ends, and reads those that it has into `buffer`, from
  /// `start` to at most its end. A stop can be requested during the wait.
  ///
  /// - Returns: the number of bytes, 0 at the end of the stream, or nil if `isStopping`, which is
  ///   called several times a second, returned true.
  public func readAvailable(
    into buffer: inout [UInt8], from start: Int = 0, isStopping: () -> Bool
  ) throws(SystemError) -> Int? {
    while !isStopping() {
      // A FIFO that no program has opened for writing yet has no end.
      let ready = cl_wait_for_input(raw, 200)
      if ready < 0 { throw SystemError(.read, name, number: Int32(-ready)) }
      if ready == 0 { continue }
      let isBusy = { (number: Int32) in number == EAGAIN }
      let count = try SystemError.query(.read, name, unless: isBusy) {
        unsafe buffer.withUnsafeMutableBytes {
          unsafe cl_read(raw, $0.baseAddress?.advanced(by: start), $0.count - start)
        }
      }
      if count >= 0 { return count }
    }
    return nil
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
  /// false if that is impossible, now or at all, and the file must be copied: the file system does
  /// not support it, or not for this file (Btrfs: EINVAL for one without copy on write), or not
  /// while its blocks are being written (OpenZFS: EAGAIN), or the files are on different volumes.
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
