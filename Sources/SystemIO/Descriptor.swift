internal import CLinux
internal import Glibc

/// An open file, closed when it goes out of use.
///
/// Its calls name the file in their errors by `name`, which is given when it is opened and which
/// callers complete with `SystemError.inside(_:)`.
public struct Descriptor: ~Copyable, Sendable {
  /// The descriptor, -1 once it is closed.
  private(set) var raw: Int32
  /// The name that errors bear.
  public let name: ByteString

  init(adopting raw: Int32, name: ByteString) {
    self.raw = raw
    self.name = name
  }

  deinit { if raw >= 0 { _ = cl_close(raw) } }

  /// Opens the regular file at a path, relative to the working directory if it is not absolute. The last
  /// component may be a link; below directories that others can write to, use `Directory` instead.
  ///
  /// Nothing else is opened: a FIFO would keep its reader waiting for ever.
  public static func open(path: ByteString) throws(SystemError) -> Descriptor {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
    let raw = try SystemError.check(.open, path) {
      unsafe path.withCString { unsafe cl_open(AT_FDCWD, $0, flags, 0) }
    }
    let file = Descriptor(adopting: Int32(raw), name: path)
    switch try file.status().kind {
    case .file: return file
    case .directory: throw SystemError(.open, path, number: EISDIR)
    default: throw SystemError(.open, path, number: ESPIPE)
    }
  }

  /// Makes a file without a name, in memory, that goes when it is closed.
  public static func inMemory(_ bytes: [UInt8]) throws(SystemError) -> Descriptor {
    let name: ByteString = "memory"
    let raw = try SystemError.check(.create, name) {
      unsafe name.withCString { unsafe cl_memory_file($0) }
    }
    let file = Descriptor(adopting: Int32(raw), name: name)
    try file.write(bytes)
    return file
  }

  /// Closes, and tells of an error that only comes to light then, as on network file systems.
  public consuming func close() throws(SystemError) {
    let result = cl_close(raw)
    raw = -1
    _ = try SystemError.check(.close, name) { result }
  }

  /// A second descriptor of the same open file (dup(2)).
  public func duplicate() throws(SystemError) -> Descriptor {
    let copy = try SystemError.check(.open, name) { cl_duplicate(raw) }
    return Descriptor(adopting: Int32(copy), name: name)
  }

  /// Lets go of a descriptor that somebody else owns.
  consuming func release() { raw = -1 }

  /// The status of the open file.
  public func status() throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try SystemError.check(.status, name) { unsafe cl_stat_open(raw, &status) }
    return FileStatus(status)
  }

  /// Makes what was written durable. After a failure the same descriptor must not be synced again:
  /// the kernel may have dropped the pages, and a second call would say that all is well.
  public func sync() throws(SystemError) {
    _ = try SystemError.check(.sync, name) { cl_fsync(raw) }
  }

  /// Begins to write a range of the file to the disk, so that a later `sync()` or `syncVolume()` has
  /// less to do: it waits for nothing and makes nothing durable. Does nothing where the system has no
  /// such call (sync_file_range(2)).
  public func beginSync(_ bytes: Range<UInt64>) throws(SystemError) {
    try syncRange(bytes, by: cl_begin_sync)
  }

  /// Waits until a range of the file is written to the disk. That does not make it durable: what says
  /// where it lies there may be missing, and a `sync()` or `syncVolume()` is needed as ever. Does
  /// nothing where the system has no such call (sync_file_range(2)), and where the file system passes it
  /// over, as overlayfs does.
  public func endSync(_ bytes: Range<UInt64>) throws(SystemError) {
    try syncRange(bytes, by: cl_end_sync)
  }

  private func syncRange(
    _ bytes: Range<UInt64>, by call: (Int32, Int64, Int64) -> Int
  ) throws(SystemError) {
    // A count of 0 means all that follows.
    if bytes.isEmpty { return }
    do {
      _ = try SystemError.check(.sync, name) {
        call(raw, Int64(clamping: bytes.lowerBound), Int64(clamping: bytes.count))
      }
    } catch {
      if !error.isUnsupported { throw error }
    }
  }

  /// Makes everything durable that was written to the file's volume.
  public func syncVolume() throws(SystemError) {
    _ = try SystemError.check(.sync, name) { cl_syncfs(raw) }
  }
}

extension ByteString {
  /// Calls `body` with the bytes as the kernel takes them. A NUL inside would shorten the name
  /// silently, so such a name is given as the empty one, which the kernel refuses.
  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    unsafe storage.withUnsafeBytes {
      guard !hasNUL, let first = $0.baseAddress else { return unsafe body("") }
      return unsafe body(first.assumingMemoryBound(to: CChar.self))
    }
  }
}
