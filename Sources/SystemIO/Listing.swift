internal import CLinux
internal import Glibc

/// One buffer of names as `getdents64(2)` fills it: the names are used where they lie.
///
/// 64 KiB hold about 2,000 names, so a folder of ordinary size is one call and one batch.
struct Listing: ~Copyable {
  /// The buffer, for the names at `places`.
  private(set) var bytes = [UInt8](repeating: 0, count: 64 * 1024)
  /// Where the names lie, but for `.` and `..`.
  private(set) var places: [Place] = []

  /// Where one name lies in the buffer; a NUL is behind it.
  struct Place {
    let offset: Int
    let length: Int
  }

  /// Reads the next names; false when there are no more.
  mutating func fill(
    from raw: Int32, path: @autoclosure () -> ByteString
  ) throws(SystemError) -> Bool {
    let filled = try SystemError.check(.list, path()) {
      unsafe bytes.withUnsafeMutableBytes { unsafe cl_list(raw, $0.baseAddress, $0.count) }
    }
    findPlaces(filled)
    return filled > 0
  }

  /// Finds the names in `struct linux_dirent64`: inode 8 bytes, offset 8, length of the record 2,
  /// type 1, then the name and a NUL.
  private mutating func findPlaces(_ filled: Int) {
    places.removeAll(keepingCapacity: true)
    let header = 19
    var record = 0
    while record + header < filled {
      let start = record + header
      var end = start
      while bytes[end] != 0 { end &+= 1 }
      record += Int(bytes[record + 16]) | Int(bytes[record + 17]) << 8
      if !isSelfOrParent(start, end - start) {
        places.append(Place(offset: start, length: end - start))
      }
    }
  }

  private func isSelfOrParent(_ start: Int, _ length: Int) -> Bool {
    let dot = UInt8(ascii: ".")
    return bytes[start] == dot && (length == 1 || (length == 2 && bytes[start + 1] == dot))
  }

  /// A copy of a name.
  func name(_ place: Place) -> ByteString {
    ByteString(bytes[place.offset..<(place.offset + place.length)])
  }

  /// The status of the entry named at a place; a link's own.
  func status(
    _ place: Place, in raw: Int32, path: @autoclosure () -> ByteString
  ) throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try SystemError.check(.status, path()) {
      unsafe bytes.withUnsafeBytes {
        guard let first = $0.baseAddress else { return -Int(EINVAL) }
        let name = unsafe first.advanced(by: place.offset)
        return unsafe cl_stat(raw, name.assumingMemoryBound(to: CChar.self), 0, &status)
      }
    }
    return FileStatus(status)
  }
}
