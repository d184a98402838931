internal import SystemIO

/// An entry of a zip archive, from its central directory (APPNOTE.TXT 4.3.12).
struct ZipEntry {
  /// The name's bytes as stored; a directory's name ends with a slash.
  let name: ByteString
  let madeBy: UInt16
  let flags: UInt16
  let method: UInt16
  /// The modification time from an extra field; without one, the stored local time as UTC.
  let modified: Timestamp
  let checksum: UInt32
  let packedSize: UInt64
  let size: UInt64
  let attributes: UInt32
  /// The offset of the local header.
  let offset: UInt64

  /// The type of an entry.
  enum Kind { case folder, file, link, special }

  /// The supported methods, stored and deflated.
  static let methods: Set<UInt16> = [0, 8]

  /// Whether the data or the names are encrypted (APPNOTE.TXT 4.4.4).
  var isEncrypted: Bool { flags & (1 | 1 << 6 | 1 << 13) != 0 || method == 99 }

  /// Whether sizes and checksum follow the data, so that they can be 0 in the local header.
  var hasDescriptor: Bool { flags & 1 << 3 != 0 }

  private var endsInSlash: Bool { name.bytes.last == UInt8(ascii: "/") }

  /// The Unix mode, in archives created on Unix (3) or on a Mac (19).
  private var mode: UInt32? {
    let system = madeBy >> 8
    let mode = attributes >> 16
    return (system == 3 || system == 19) && mode != 0 ? mode : nil
  }

  var kind: Kind {
    switch (mode ?? 0) & 0o170000 {
    case 0: endsInSlash ? .folder : .file
    case 0o100000: endsInSlash ? .special : .file
    case 0o040000: .folder
    case 0o120000: endsInSlash ? .special : .link
    default: .special
    }
  }

  /// The permission bits of the mode; without one, the defaults for new files and directories.
  var permissions: UInt16 {
    guard let mode, mode & 0o777 != 0 else { return kind == .folder ? 0o755 : 0o644 }
    return UInt16(mode & 0o777)
  }

  /// The name without a directory's trailing slash.
  var path: ByteString { endsInSlash ? ByteString(name.bytes.dropLast()) : name }
}
