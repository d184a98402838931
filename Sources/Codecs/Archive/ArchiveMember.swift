/// The metadata of an entry of an archive, as `ArchiveReader` finds it.
public struct ArchiveMember: Sendable, Hashable {
  /// The bytes of the name, or nil if the archive has none, or has one that is not text in the
  /// encoding that it claims.
  public var path: [UInt8]?
  public var kind: Kind
  /// The permission bits, at most 07777.
  public var mode: UInt16
  /// The numbers of owner and group; one that Linux does not have is 65534, and in `omissions`.
  public var owner: UInt32
  public var group: UInt32
  /// The names of owner and group; empty if the archive has none.
  public var userName: [UInt8]
  public var groupName: [UInt8]
  /// The modification time in seconds since 1970, with nanoseconds (0 to 999,999,999).
  public var modified: Int64
  public var nanoseconds: UInt32
  /// The extended attributes in the order of the archive, and the ACLs in the form of the kernel's
  /// attributes.
  public var attributes: [PaxMember.Attribute] = []
  /// Properties that could not be read, each as a clause.
  public var omissions: [String] = []
  /// Whether the content is encrypted, and so cannot be read.
  public var isEncrypted = false
  /// Whether a zip archive has another name in its directory than at the member: one of the two is
  /// damaged.
  public var isRenamed = false

  /// The kinds of members.
  public enum Kind: Sendable, Hashable {
    /// A file with its size in bytes, if the archive has it before the content.
    case file(size: UInt64?)
    case directory
    case symbolicLink(target: [UInt8])
    /// A hard link to an earlier member; the size of content that comes with it, or 0.
    case hardLink(target: [UInt8], size: UInt64)
    case fifo
    case characterDevice(major: UInt32, minor: UInt32)
    case blockDevice(major: UInt32, minor: UInt32)
    /// A socket or a type that Linux does not have.
    case other
    /// A link whose target is not text in the encoding that the archive claims.
    case unreadableLink
  }
}

/// The bytes of an archive, from the caller's file or stream.
public protocol ArchiveInput: AnyObject {
  /// Reads the next bytes into the buffer and returns their number: 0 at the end, -1 if it failed,
  /// in which case the input keeps its error.
  func read(into buffer: inout [UInt8]) -> Int

  /// The size in bytes if any position can be read, or nil for a stream.
  var size: UInt64? { get }

  /// Continues at another position. Called only if there is a size.
  func seek(to offset: UInt64)
}
