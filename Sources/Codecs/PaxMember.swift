/// A member of a POSIX archive (pax, POSIX.1-2001) with all that a file system knows of a file.
///
/// The header is the plain one of ustar where everything fits; what does not (long names, fractions
/// of seconds, large numbers, extended attributes) stands in an extended header before it. Names
/// are written as they are, whatever bytes they have.
public struct PaxMember: Sendable, Hashable {
  /// The name's bytes: relative, not empty, without NUL and without a slash at the end.
  public var path: [UInt8]
  public var kind: Kind
  /// Permission bits, at most 07777.
  public var mode: UInt16
  public var owner: UInt32 = 0
  public var group: UInt32 = 0
  /// The owner's and the group's names, by which an archive program prefers to give the file away.
  public var userName = ""
  public var groupName = ""
  /// The modification time in seconds since 1970, and the nanoseconds after them.
  public var modified: Int64 = 0
  public var nanoseconds: UInt32 = 0
  /// Extended attributes, which GNU tar and bsdtar know by the prefix `SCHILY.xattr.`
  public var attributes: [Attribute] = []

  /// An extended attribute.
  public struct Attribute: Sendable, Hashable {
    public var name: [UInt8]
    public var value: [UInt8]

    /// Makes an attribute.
    public init(name: [UInt8], value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  /// The kinds of members.
  public enum Kind: Sendable, Hashable {
    /// A file with so many bytes of content, which follow the header, padded.
    case file(size: UInt64)
    case directory
    case symbolicLink(target: [UInt8])
    /// Another name of an earlier member.
    case hardLink(target: [UInt8])
    case fifo
    case characterDevice(major: UInt32, minor: UInt32)
    case blockDevice(major: UInt32, minor: UInt32)
  }

  /// Makes a member.
  public init(path: [UInt8], kind: Kind, mode: UInt16) {
    self.path = path
    self.kind = kind
    self.mode = mode
  }

  /// How many zeros follow a content of `size` bytes.
  public static func padding(after size: UInt64) -> Int {
    let rest = Int(size % UInt64(TarMember.blockSize))
    return rest == 0 ? 0 : TarMember.blockSize - rest
  }

  /// What ends an archive.
  public static let end = [UInt8](repeating: 0, count: TarMember.endSize)
}

extension PaxMember {
  var contentSize: UInt64 { if case .file(let size) = kind { size } else { 0 } }

  var linkTarget: [UInt8] {
    switch kind {
    case .symbolicLink(let target), .hardLink(let target): target
    default: []
    }
  }

  var device: (major: UInt32, minor: UInt32) {
    switch kind {
    case .characterDevice(let major, let minor), .blockDevice(let major, let minor):
      (major, minor)
    default: (0, 0)
    }
  }

  /// A directory's name ends with a slash.
  var headerPath: [UInt8] { kind == .directory ? path + [UInt8(ascii: "/")] : path }

  var typeFlag: UInt8 {
    switch kind {
    case .file: UInt8(ascii: "0")
    case .hardLink: UInt8(ascii: "1")
    case .symbolicLink: UInt8(ascii: "2")
    case .characterDevice: UInt8(ascii: "3")
    case .blockDevice: UInt8(ascii: "4")
    case .directory: UInt8(ascii: "5")
    case .fifo: UInt8(ascii: "6")
    }
  }
}
