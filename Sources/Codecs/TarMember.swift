/// What a tar archive says of one member besides its content.
///
/// Owner and group are always 0, and there are no fractions of seconds: what a backup needs of a
/// file beyond name and content is kept elsewhere.
public struct TarMember: Sendable, Hashable {
  /// The name's bytes, as they are: any but NUL, relative, without a slash at the end.
  public var path: [UInt8]
  /// What the member is.
  public var kind: Kind
  /// The permission bits, at most 07777.
  public var mode: UInt16
  /// The modification time in whole seconds since 1970. What the header's 11 octal digits cannot
  /// hold (before 1970, after 2242) is written as the nearest time that they can.
  public var modified: Int64

  /// Makes a member.
  public init(path: [UInt8], kind: Kind, mode: UInt16, modified: Int64) {
    self.path = path
    self.kind = kind
    self.mode = mode
    self.modified = modified
  }

  /// Makes a file's member.
  public init(path: [UInt8], size: Int, mode: UInt16 = 0o644, modified: Int64 = 0) {
    self.init(path: path, kind: .file(size: size), mode: mode, modified: modified)
  }

  /// The kinds of members.
  public enum Kind: Sendable, Hashable {
    /// A file with so many bytes of content.
    case file(size: Int)
    case directory
    /// A symbolic link; its target is any bytes but NUL.
    case symbolicLink(target: [UInt8])
    /// Another name of an earlier member.
    case hardLink(target: [UInt8])
    /// A fifo, a device or anything else; only a reader gives it.
    case other
  }

  /// Bytes of the content.
  public var contentSize: Int { if case .file(let size) = kind { size } else { 0 } }
}

extension TarMember {
  /// The unit of a tar archive.
  public static let blockSize = 512
  /// Two empty blocks, which end an archive.
  public static let endSize = 2 * blockSize

  /// How many bytes the member takes in an archive: headers, content and padding.
  public var encodedSize: Int { headerSize + Self.padded(contentSize) }

  /// How many bytes stand before the content.
  ///
  /// One block; where name or link target does not fit into it, GNU's long name before it: a block
  /// and the name's bytes with a NUL, padded.
  public var headerSize: Int {
    var size = Self.blockSize
    if !fitsPlainHeader {
      for name in [headerPath, linkTarget] where name.count > Self.nameSize {
        size += Self.blockSize + Self.padded(name.count + 1)
      }
    }
    return size
  }

  static let nameSize = 100
  static let prefixSize = 155

  static func padded(_ size: Int) -> Int { (size + blockSize - 1) / blockSize * blockSize }

  /// The name as the header has it: a directory's ends with a slash.
  var headerPath: [UInt8] { kind == .directory ? path + [UInt8(ascii: "/")] : path }

  var linkTarget: [UInt8] {
    switch kind {
    case .symbolicLink(let target), .hardLink(let target): target
    default: []
    }
  }

  /// Whether name and link fit into the fields of a POSIX header: 100 bytes each, the name also in
  /// two parts of at most 155 and 100 that a slash joins.
  var fitsPlainHeader: Bool {
    if linkTarget.count > Self.nameSize { return false }
    let name = headerPath
    if name.count <= Self.nameSize { return true }
    let slash = UInt8(ascii: "/")
    let from = max(1, name.count - Self.nameSize - 1)
    guard let split = name[from...].firstIndex(of: slash) else { return false }
    return split <= Self.prefixSize && split + 1 < name.count
  }
}
