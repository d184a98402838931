/// The metadata of a tar member.
///
/// Owner and group are always 0, and times have no fractions: a backup stores further metadata
/// elsewhere.
public struct TarMember: Sendable, Hashable {
  /// The bytes of the name: relative, without NUL and without a trailing slash.
  public var path: [UInt8]
  /// The kind of the member.
  public var kind: Kind
  /// The permission bits, at most 07777.
  public var mode: UInt16
  /// The modification time in seconds since 1970. Times outside the range of the header's 11 octal
  /// digits (1970 to 2242) are written as the nearest time in it.
  public var modified: Int64

  /// Creates a member.
  public init(path: [UInt8], kind: Kind, mode: UInt16, modified: Int64) {
    self.path = path
    self.kind = kind
    self.mode = mode
    self.modified = modified
  }

  /// Creates the member of a file.
  public init(path: [UInt8], size: Int, mode: UInt16 = 0o644, modified: Int64 = 0) {
    self.init(path: path, kind: .file(size: size), mode: mode, modified: modified)
  }

  /// The kinds of members.
  public enum Kind: Sendable, Hashable {
    /// A file with `size` bytes of content.
    case file(size: Int)
    case directory
    /// A symbolic link, whose target may be any bytes without NUL.
    case symbolicLink(target: [UInt8])
    /// A hard link to an earlier member.
    case hardLink(target: [UInt8])
    /// A FIFO, a device or another kind. Only returned by the reader.
    case other
  }

  /// The size of the content in bytes.
  public var contentSize: Int { if case .file(let size) = kind { size } else { 0 } }
}

extension TarMember {
  /// The block size of a tar archive.
  public static let blockSize = 512
  /// The size of the two empty blocks at the end of an archive.
  public static let endSize = 2 * blockSize

  /// The size of the member in an archive: headers, content and padding.
  public var encodedSize: Int { headerSize + Self.padded(contentSize) }

  /// The size of the headers before the content.
  ///
  /// One block. If the name or the link target does not fit, GNU long names precede it: for each a
  /// block and the bytes with a NUL, padded.
  public var headerSize: Int {
    var size = Self.blockSize
    if !fitsPlainHeader {
      for name in [headerPath, linkTarget] where name.count > Self.nameSize {
        size += Self.blockSize + Self.padded(name.count + 1)
      }
    }
    return size
  }

  /// The maximum size of a name, or of a link target, in a header, in bytes.
  static let nameSize = 100

  static func padded(_ size: Int) -> Int { (size + blockSize - 1) / blockSize * blockSize }

  /// The name in the header, which ends with a slash for a directory.
  var headerPath: [UInt8] { kind == .directory ? path + [UInt8(ascii: "/")] : path }

  var linkTarget: [UInt8] {
    switch kind {
    case .symbolicLink(let target), .hardLink(let target): target
    default: []
    }
  }

  /// Whether name and link target fit into a POSIX header: 100 bytes each, or the name in two parts
  /// of at most 155 and 100 bytes separated by a slash.
  var fitsPlainHeader: Bool {
    linkTarget.count <= Self.nameSize && TarBlock.split(headerPath) != nil
  }
}
