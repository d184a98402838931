internal import CLinux

/// The free space of a volume for a user without privileges.
public struct VolumeSpace: Hashable, Sendable {
  /// The bytes that can still be written; the maximum if they are not known.
  public let available: UInt64
  /// The total size in bytes; 0 if it is not known. Some file systems without a limit of their own
  /// report none (ramfs), and FUSE file systems that do not implement it.
  public let total: UInt64
  /// The number of files that can still be created; 0 if the file system does not count them.
  public let availableInodes: UInt64
  /// Whether the file system counts inodes and has a fixed number of them.
  public var countsInodes: Bool
  /// The additional bytes that only root can write.
  public var reserved: UInt64 = 0
  /// The space that file content takes.
  public var keeping = Keeping.unknown
  /// The device number of the file system, if known. Volumes with the same number share their
  /// space.
  public var device: UInt64?

  /// The space that file content takes on a volume.
  public enum Keeping: Hashable, Sendable {
    /// Possibly less than its size: the file system may compress or deduplicate, or is unknown.
    case unknown
    /// Whole blocks of the given size in bytes.
    case blocks(UInt64)
    /// Whole blocks; content smaller than a block may be stored in the inode.
    case blocksOrInode(UInt64)
  }

  /// Whether the volume reports its size.
  public var isKnown: Bool { total > 0 }

  /// Creates the space of a volume. With a total size of 0 it is unknown.
  public init(available: UInt64, total: UInt64, availableInodes: UInt64 = 0) {
    self.available = total > 0 ? available : .max
    self.total = total
    self.availableInodes = availableInodes
    countsInodes = availableInodes > 0
  }

  init(_ volume: cl_volume) {
    self.init(available: volume.available, total: volume.total, availableInodes: volume.inodes)
    countsInodes = volume.all_inodes > 0
    if volume.block > 0 {
      // Other file systems need their reserve for themselves, as btrfs does for its metadata.
      reserved = volume.reserved
      keeping = volume.packs_small != 0 ? .blocksOrInode(volume.block) : .blocks(volume.block)
    }
  }

  /// Returns the minimum number of bytes of the volume that a file with `bytes` bytes of data
  /// takes, or `bytes` if that is unknown.
  public func allocated(by bytes: UInt64) -> UInt64 {
    switch keeping {
    case .unknown: bytes
    case .blocks(let block): Self.rounded(bytes, to: block)
    case .blocksOrInode(let block): bytes < block ? bytes : Self.rounded(bytes, to: block)
    }
  }

  private static func rounded(_ bytes: UInt64, to block: UInt64) -> UInt64 {
    let (blocks, rest) = bytes.quotientAndRemainder(dividingBy: block)
    let (whole, isTooMuch) = (rest > 0 ? blocks + 1 : blocks).multipliedReportingOverflow(by: block)
    return isTooMuch ? .max : whole
  }
}

extension Descriptor {
  /// Returns the volume's free space.
  public func space() throws(SystemError) -> VolumeSpace {
    var volume = cl_volume()
    _ = try SystemError.check(.space, name) { unsafe cl_space(raw, &volume) }
    return VolumeSpace(volume)
  }

  /// Whether the volume is mounted read-only.
  func isReadOnly() throws(SystemError) -> Bool {
    try SystemError.check(.space, name) { cl_is_read_only(raw) } != 0
  }

  /// Returns the number of bytes whose blocks are shared with other files and which removing the
  /// file would not free. 0 if the file system does not report it.
  public func sharedBytes() throws(SystemError) -> UInt64 {
    var bytes: UInt64 = 0
    do {
      _ = try SystemError.check(.readFlags, name) { unsafe cl_shared_bytes(raw, &bytes) }
    } catch {
      if error.isUnsupported { return 0 }
      throw error
    }
    return bytes
  }
}

extension Directory {
  /// Whether the volume is mounted read-only.
  public func isReadOnly() throws(SystemError) -> Bool { try descriptor.isReadOnly() }

  /// Returns the free space of the directory's volume.
  public func space() throws(SystemError) -> VolumeSpace { try descriptor.space() }

  /// Whether the directory's volume records access times (no `noatime`).
  public func notesAccess() throws(SystemError) -> Bool {
    try SystemError.check(.space, path) { cl_notes_access(raw) } != 0
  }

  /// Whether files on the directory's volume may share blocks with others (reflinks).
  public func mayShareBlocks() throws(SystemError) -> Bool {
    try SystemError.check(.space, path) { cl_may_share(raw) } != 0
  }
}
