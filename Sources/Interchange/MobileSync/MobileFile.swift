internal import Codecs
internal import SystemIO

/// The metadata of a file in a backup: an `MBFile` of Manifest.db or a record of Manifest.mbdb.
struct MobileFile: Hashable, Sendable {
  /// The type and the permissions, as in `st_mode`; nil if they are not recorded.
  var mode: UInt16?
  /// The size in bytes when the backup of the file began. That of a live database often differs
  /// from the size of its content.
  var size: UInt64 = 0
  var owner: UInt32 = 0
  var group: UInt32 = 0
  var inode: UInt64 = 0
  /// The times in seconds since 1970.
  var modified: Int64 = 0
  var changed: Int64 = 0
  var born: Int64 = 0
  /// The class of data protection: 1 to 4 (complete, unless open, until first authentication,
  /// none), 0 if the file has none.
  var protectionClass: UInt8 = 0
  /// The target of a symbolic link.
  var target: ByteString?
  /// The key of the content in an encrypted backup.
  var key: WrappedKey?
  /// The SHA-1 of the stored content, which only system domains have.
  var digest: [UInt8]?
  /// The extended attributes under their names on the device.
  var attributes: [ForeignEntry.Attribute] = []

  /// The class of files whose app does not request one.
  static let usualProtectionClass: UInt8 = 3

  /// The type of a file, by the bits of `S_IFMT`.
  enum Kind: Hashable, Sendable {
    case file, directory, symlink
  }

  /// The type according to the mode; nil if the mode is not recorded or the type does not occur in
  /// backups.
  var kind: Kind? {
    switch (mode ?? 0) & 0o170000 {
    case 0o100000: .file
    case 0o040000: .directory
    case 0o120000: .symlink
    default: nil
    }
  }
}

/// An entry of a backup: its names and its metadata.
struct MobileRecord: Hashable, Sendable {
  /// The domain, such as `AppDomain-com.example.app`.
  var domain: ByteString
  /// The path in the domain; empty for its root.
  var relativePath: ByteString
  /// The name of the content in the backup: 40 lower-case hexadecimal digits.
  var fileID: ByteString
  /// The column `flags` of Manifest.db: 1 a file, 2 a directory, 4 a symbolic link; nil in
  /// Manifest.mbdb.
  var flags: Int64?
  var file: MobileFile

  /// The path for messages: the domain and the path in it.
  var shownPath: ByteString { domain.appending(relativePath) }

  /// Returns the name of the content of a file: the SHA-1 of its domain, `-` and path.
  static func fileID(domain: ByteString, relativePath: ByteString) -> ByteString {
    let name = Array(domain.bytes) + [UInt8(ascii: "-")] + Array(relativePath.bytes)
    return ByteString(Hex.encode(MessageDigest.digest(of: name.span, .sha1)))
  }

  /// Whether `fileID` is the one of the domain and the path.
  var hasFileIDOfItsName: Bool {
    fileID == Self.fileID(domain: domain, relativePath: relativePath)
  }

  /// Whether a name has the form of `fileID`. No other name is looked up in the backup.
  static func isFileID(_ name: ByteString) -> Bool {
    name.count == 40
      && name.bytes.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
      }
  }

  /// The type of the entry, or the reason why it has none.
  var kind: Result<MobileFile.Kind, RecordFault> {
    let byFlags: MobileFile.Kind? =
      switch flags {
      case 1: .file
      case 2: .directory
      case 4: .symlink
      default: nil
      }
    if let flags, byFlags == nil {
      return .failure(RecordFault(reason: "its flags are \(flags), which is not a known type"))
    }
    guard let kind = file.kind ?? (file.mode.map { $0 & 0o170000 } ?? 0 == 0 ? byFlags : nil) else {
      let mode = String(file.mode ?? 0, radix: 8)
      return .failure(
        RecordFault(reason: "its mode 0\(mode) is not one of a file, directory or link"))
    }
    if let byFlags, byFlags != kind {
      return .failure(RecordFault(reason: "its flags and its mode name different types"))
    }
    return .success(kind)
  }
}

/// The reason why an entry of a manifest cannot be used, as a clause without its subject.
struct RecordFault: Error, Hashable, Sendable {
  let reason: String
}
