internal import CLinux
internal import Glibc

extension Directory {
  /// Returns the names of the children, sorted by bytes, without `.` and `..`.
  public func names() throws(SystemError) -> [ByteString] {
    let again = try duplicate()
    return try sortedNames(through: again.raw)
  }

  /// Returns the names of the children, sorted by bytes, and closes the directory. Needs no second
  /// descriptor, unlike `names()`.
  public consuming func readNames() throws(SystemError) -> [ByteString] {
    try sortedNames(through: raw)
  }

  private func sortedNames(through raw: Int32) throws(SystemError) -> [ByteString] {
    var names: [ByteString] = []
    try forEachName(through: raw) { names.append(ByteString($0)) }
    names.sort()
    return names
  }

  /// Calls `body` with the name of each child in the file system's order, which is valid during the
  /// call: a large directory needs no list of its names.
  public func forEachName(_ body: (Span<UInt8>) -> Void) throws(SystemError) {
    let again = try duplicate()
    try forEachName(through: again.raw, body)
  }

  private func forEachName(
    through raw: Int32, _ body: (Span<UInt8>) -> Void
  ) throws(SystemError) {
    var listing = Listing()
    while try listing.fill(from: raw, path: path) {
      unsafe listing.withEach { child, _ in body(listing.bytes.span.extracting(child.range)) }
    }
  }

  /// Whether the directory has no children.
  public func isEmpty() throws(SystemError) -> Bool { try children().isEmpty }

  /// Returns the children in the file system's order. Children that vanish during the call are
  /// omitted.
  func children() throws(SystemError) -> [(name: ByteString, isDirectory: Bool)] {
    let again = try duplicate()
    return try children(through: again.raw)
  }

  /// Returns the children of a directory that has not been listed before. Needs no second
  /// descriptor, unlike `children()`.
  func childrenListedOnce() throws(SystemError) -> [(name: ByteString, isDirectory: Bool)] {
    try children(through: raw)
  }

  /// Returns the children, from a descriptor that has not been listed before.
  private func children(
    through raw: Int32
  ) throws(SystemError) -> [(name: ByteString, isDirectory: Bool)] {
    var listing = Listing()
    var found: [(name: ByteString, type: UInt8)] = []
    while try listing.fill(from: raw, path: path) {
      unsafe listing.withEach { child, _ in found.append((listing.name(child), child.type)) }
    }
    var children: [(name: ByteString, isDirectory: Bool)] = []
    for (name, type) in found {
      if type != DT_UNKNOWN {
        children.append((name, type == DT_DIR))
      } else if let status = try statusIfPresent(name) {
        children.append((name, status.kind == .directory))
      }
    }
    return children
  }
}

extension Directory {
  /// A buffer of directory entries as `getdents64(2)` fills it; names are used in place.
  ///
  /// 64 KiB hold about 2,000 names, so a directory of ordinary size takes one call and one batch.
  struct Listing: ~Copyable {
    /// The buffer that the ranges of `withEach` refer to.
    private(set) var bytes = [UInt8](repeating: 0, count: 64 * 1024)
    /// The number of bytes filled.
    private var filled = 0

    /// The location of a name in the buffer, which a NUL terminates, and the entry's other fields.
    struct ListedChild {
      let range: Range<Int>
      let inode: UInt64
      /// `DT_DIR` and so on, or `DT_UNKNOWN` if the file system does not report the kind.
      let type: UInt8
    }

    /// Reads the next entries. Returns false at the end of the directory.
    mutating func fill(
      from raw: Int32, path: @autoclosure () -> ByteString
    ) throws(SystemError) -> Bool {
      filled = 0
      filled = try SystemError.check(.list, path()) {
        unsafe bytes.withUnsafeMutableBytes { unsafe cl_list(raw, $0.baseAddress, $0.count) }
      }
      return filled > 0
    }

    /// Fills the buffer with names as if they had been listed, as far as they fit.
    mutating func fill(with children: [(name: ByteString, inode: UInt64)]) {
      filled = 0
      for child in children {
        // The name and a NUL after the header, padded to a multiple of 8.
        let length = (19 + child.name.count + 1 + 7) / 8 * 8
        guard length <= bytes.count - filled else { return }
        let start = filled
        unsafe bytes.withUnsafeMutableBytes { buffer in
          unsafe buffer.storeBytes(of: child.inode, toByteOffset: start, as: UInt64.self)
          unsafe buffer.storeBytes(of: 0, toByteOffset: start + 8, as: UInt64.self)
          unsafe buffer.storeBytes(
            of: UInt16(length), toByteOffset: start + 16, as: UInt16.self)
        }
        let name = Array(child.name.bytes)
        let padding = [UInt8](repeating: 0, count: length - 19 - name.count)
        bytes.replaceSubrange(
          (start + 18)..<(start + length), with: [UInt8(DT_UNKNOWN)] + name + padding)
        filled += length
      }
    }

    /// The inode number that the buffer gives for the directory itself (`.`), or nil if it does not
    /// begin with it.
    var ownInode: UInt64? {
      guard filled > 20, bytes[19] == UInt8(ascii: "."), bytes[20] == 0 else { return nil }
      return unsafe bytes.withUnsafeBytes { unsafe $0.load(as: UInt64.self) }
    }

    /// Calls `body` with the location and the C string of each name except `.` and `..`.
    ///
    /// The buffer holds one `struct linux_dirent64` after another: inode 8 bytes, offset 8, length
    /// of the record 2, type 1, then the name and a NUL.
    @inline(__always)
    func withEach(_ body: (ListedChild, UnsafePointer<CChar>) -> Void) {
      unsafe bytes.withUnsafeBytes { buffer in
        var record = 0
        while record < filled {
          let next =
            record &+ Int(unsafe buffer.load(fromByteOffset: record &+ 16, as: UInt16.self))
          let start = record &+ 19
          let end = unsafe Self.endOfName(buffer, start: start, next: next)
          let child = ListedChild(
            range: start..<end, inode: unsafe buffer.load(fromByteOffset: record, as: UInt64.self),
            type: unsafe buffer[record &+ 18])
          if let first = buffer.baseAddress, unsafe !Self.isSelfOrParent(buffer, child.range) {
            unsafe body(child, first.advanced(by: start).assumingMemoryBound(to: CChar.self))
          }
          record = next
        }
      }
    }

    /// Returns the location of the NUL after a name. Records are multiples of 8 bytes, so it is the
    /// first NUL in the last 8 bytes; if the name is short, the first 3 of these belong to the
    /// header.
    @inline(__always)
    private static func endOfName(_ buffer: UnsafeRawBufferPointer, start: Int, next: Int) -> Int {
      let last = next &- 8
      var word = UInt64(littleEndian: unsafe buffer.load(fromByteOffset: last, as: UInt64.self))
      if last < start { word |= 0xff_ffff }
      let zeros = (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
      return last &+ zeros.trailingZeroBitCount / 8
    }

    @inline(__always)
    private static func isSelfOrParent(_ buffer: UnsafeRawBufferPointer, _ name: Range<Int>) -> Bool
    {
      let dot = UInt8(ascii: ".")
      guard unsafe buffer[name.lowerBound] == dot else { return false }
      return unsafe name.count == 1 || (name.count == 2 && buffer[name.lowerBound &+ 1] == dot)
    }

    /// Returns a copy of a name.
    func name(_ child: ListedChild) -> ByteString { ByteString(bytes[child.range]) }
  }
}
