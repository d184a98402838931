internal import CLinux
internal import Glibc

/// A name or a short relative path in a buffer that is reused, so that lookups for each entry of a
/// tree need no allocation.
public struct NameBuffer: ~Copyable {
  /// The bytes and a terminating NUL.
  private var storage: [UInt8] = [0]

  /// Creates a buffer with room for a path of two names.
  public init() { storage.reserveCapacity(2 * 256) }

  /// Replaces the path with a name.
  public mutating func set(_ name: Span<UInt8>) {
    storage.removeAll(keepingCapacity: true)
    append(name, behind: nil)
  }

  /// Appends a component to the path.
  public mutating func descend(_ name: Span<UInt8>) {
    storage.removeLast()
    append(name, behind: storage.isEmpty ? nil : ByteString.slash)
  }

  /// Appends bytes to the last component.
  public mutating func extend(_ bytes: Span<UInt8>) {
    storage.removeLast()
    append(bytes, behind: nil)
  }

  /// Truncates the path to its first `count` bytes.
  public mutating func shorten(to count: Int) {
    guard count < self.count else { return }
    storage.removeLast(self.count - count + 1)
    storage.append(0)
  }

  private mutating func append(_ bytes: Span<UInt8>, behind separator: UInt8?) {
    if let separator { storage.append(separator) }
    storage.append(bytes)
    storage.append(0)
  }

  /// The number of bytes.
  public var count: Int { storage.count - 1 }

  /// A copy of the path.
  public var copy: ByteString { ByteString(storage.dropLast()) }

  /// Calls `body` with the path as a C string. A path with a NUL inside is passed as an empty one,
  /// which the kernel refuses.
  func withCString(_ body: (UnsafePointer<CChar>) -> Int) -> Int {
    unsafe storage.withUnsafeBytes {
      guard let first = $0.baseAddress, unsafe memchr(first, 0, count) == nil else {
        return unsafe body("")
      }
      return unsafe body(first.assumingMemoryBound(to: CChar.self))
    }
  }
}

extension Directory {
  /// Returns the status of a child, without following a symbolic link, or nil if it does not exist.
  public func statusIfPresent(_ name: borrowing NameBuffer) throws(SystemError) -> FileStatus? {
    var status = cl_status()
    let result = try SystemError.query(
      .status, path.appending(name.copy), unless: SystemError.isMissing
    ) {
      unsafe name.withCString { unsafe cl_lstat(raw, $0, &status) }
    }
    return result < 0 ? nil : FileStatus(status)
  }

  /// Whether the content of a child begins with the given bytes. A symbolic link is refused. Does
  /// not update the file's access time if this user is allowed to avoid it.
  public func begins(
    _ name: borrowing NameBuffer, with bytes: Span<UInt8>
  ) throws(SystemError) -> Bool {
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let opened = Int32(
      try SystemError.check(.open, path.appending(name.copy)) {
        let quiet = unsafe name.withCString {
          unsafe cl_open(raw, $0, flags | cl_no_access_time, 0)
        }
        guard quiet == -Int(EPERM) else { return quiet }
        return unsafe name.withCString { unsafe cl_open(raw, $0, flags, 0) }
      })
    defer { _ = cl_close(opened) }
    var compared = 0
    while compared < bytes.count {
      var (part, count) = (InlineArray<64, UInt8>(repeating: 0), bytes.count - compared)
      var into = part.mutableSpan
      count = try SystemError.check(.read, path.appending(name.copy)) {
        unsafe into.withUnsafeMutableBytes {
          unsafe cl_pread(opened, $0.baseAddress, min(count, $0.count), Int64(compared))
        }
      }
      guard count > 0, (0..<count).allSatisfy({ part[$0] == bytes[compared + $0] }) else {
        return false
      }
      compared += count
    }
    return true
  }
}
