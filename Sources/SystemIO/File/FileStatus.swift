internal import CLinux

/// The kind of a directory entry.
public enum FileKind: UInt8, Sendable, Hashable, BitwiseCopyable {
  case file, directory, symlink, fifo, socket, characterDevice, blockDevice

  init?(mode: UInt32) {
    switch mode & 0o170000 {
    case 0o100000: self = .file
    case 0o040000: self = .directory
    case 0o120000: self = .symlink
    case 0o010000: self = .fifo
    case 0o140000: self = .socket
    case 0o020000: self = .characterDevice
    case 0o060000: self = .blockDevice
    default: return nil
    }
  }
}

/// The identity of a file on a running system.
public struct FileIdentity: Hashable, Sendable, BitwiseCopyable {
  public let device: UInt64
  public let inode: UInt64

  /// Creates an identity from a device number and an inode number.
  public init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// The status of a directory entry, as `statx(2)` gives it.
public struct FileStatus: Hashable, Sendable, BitwiseCopyable {
  public let kind: FileKind
  /// Whether the entry is the root of another mount.
  public let isMountPoint: Bool
  /// The permission bits with set-user-ID, set-group-ID and sticky bit: 0 to 0o7777.
  public let permissions: UInt16
  public let user: UInt32
  public let group: UInt32
  public let links: UInt32
  public let identity: FileIdentity
  /// The size in bytes, including holes.
  public private(set) var size: UInt64
  /// The bytes allocated on the volume.
  public let allocated: UInt64
  /// The device number of a character or block device (`makedev(3)`).
  public let specialDevice: UInt64
  public let modified: Timestamp
  public let changed: Timestamp
  /// Whether it is immutable or append-only, so that no user can remove it nor, if it is a
  /// directory, anything in it. A walk knows this of files only if it reads flags.
  public let isFixed: Bool
  /// The creation time, if the file system records it. A walk does not ask for it.
  public let born: Timestamp?

  /// Creates the status of a file that does not exist.
  public init(
    _ kind: FileKind, permissions: UInt16 = 0o644, user: UInt32 = 0, group: UInt32 = 0,
    links: UInt32 = 1, identity: FileIdentity, size: UInt64 = 0, modified: Timestamp,
    changed: Timestamp
  ) {
    self.kind = kind
    self.permissions = permissions
    self.user = user
    self.group = group
    self.links = links
    self.identity = identity
    self.size = size
    self.modified = modified
    self.changed = changed
    isMountPoint = false
    isFixed = false
    allocated = size
    specialDevice = 0
    born = nil
  }

  /// Returns the status of a file of which only this many bytes are read.
  public func limited(to size: UInt64) -> FileStatus {
    var status = self
    status.size = min(size, self.size)
    return status
  }

  /// Converts the kernel's status. An unknown kind becomes a character device.
  init(_ raw: cl_status) {
    kind = FileKind(mode: raw.mode) ?? .characterDevice
    isMountPoint = raw.mount_root != 0
    permissions = UInt16(raw.mode & 0o7777)
    user = raw.uid
    group = raw.gid
    links = raw.links
    identity = FileIdentity(device: raw.device, inode: raw.inode)
    size = raw.size
    allocated = raw.blocks &* 512
    specialDevice = raw.special_device
    modified = Timestamp(seconds: raw.mtime, nanoseconds: raw.mtime_ns)
    changed = Timestamp(seconds: raw.ctime, nanoseconds: raw.ctime_ns)
    isFixed = raw.fixed != 0
    born = raw.has_btime != 0 ? Timestamp(seconds: raw.btime, nanoseconds: raw.btime_ns) : nil
  }
}
