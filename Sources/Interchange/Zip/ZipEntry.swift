internal import SystemIO

/// An entry of a zip archive, as its central directory has it (APPNOTE.TXT 4.3.12).
struct ZipEntry {
  /// The name's bytes as they are stored; a directory's ends with a slash.
  let name: ByteString
  let madeBy: UInt16
  let flags: UInt16
  let method: UInt16
  /// The time of modification: of an extra field, else the stored local time taken as UTC.
  let modified: Timestamp
  let checksum: UInt32
  let packedSize: UInt64
  let size: UInt64
  let attributes: UInt32
  /// Where the local header begins.
  let offset: UInt64

  /// What the entry is.
  enum Kind { case folder, file, link, special }

  /// Stored or deflated: the two ways that are read.
  static let methods: Set<UInt16> = [0, 8]

  /// Encrypted data, strong encryption, or names that are hidden (APPNOTE.TXT 4.4.4).
  var isEncrypted: Bool { flags & (1 | 1 << 6 | 1 << 13) != 0 || method == 99 }

  /// Whether sizes and checksum stand behind the data, and may be 0 in the local header.
  var hasDescriptor: Bool { flags & 1 << 3 != 0 }

  private var endsInSlash: Bool { name.bytes.last == UInt8(ascii: "/") }

  /// The mode of Unix, of archives made on one (3) or on a Mac (19).
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

  /// The permission bits: those of the mode, else what a new file or directory has.
  var permissions: UInt16 {
    guard let mode, mode & 0o777 != 0 else { return kind == .folder ? 0o755 : 0o644 }
    return UInt16(mode & 0o777)
  }

  /// The name without the slash that marks a directory.
  var path: ByteString { endsInSlash ? ByteString(name.bytes.dropLast()) : name }
}
