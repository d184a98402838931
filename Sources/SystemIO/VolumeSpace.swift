internal import CLinux

/// The space of a volume, as a user without privileges has it.
public struct VolumeSpace: Hashable, Sendable {
  /// Bytes that can still be written.
  public let available: UInt64
  /// Bytes in all.
  public let total: UInt64
  /// Files that can still be made; 0 also where the file system does not count them.
  public let availableInodes: UInt64
  /// Whether the file system counts its files, and can hold only so many.
  public var countsInodes: Bool
  /// Bytes that only the superuser can still write, besides.
  public var reserved: UInt64 = 0
  /// What a file's bytes take.
  public var keeping = Keeping.unknown
  /// The number of its file system, where whoever asked knows it: two volumes that have the same share their
  /// space.
  public var device: UInt64?

  /// What of a volume's space a file's bytes take.
  public enum Keeping: Hashable, Sendable {
    /// Perhaps less than they are: the file system may compress or share them, or is not known.
    case unknown
    /// Whole blocks of so many bytes.
    case blocks(UInt64)
    /// Whole blocks; what is smaller than one perhaps nothing but its place in the inode.
    case blocksOrInode(UInt64)
  }

  /// Makes the space of a volume.
  public init(available: UInt64, total: UInt64, availableInodes: UInt64 = 0) {
    self.available = available
    self.total = total
    self.availableInodes = availableInodes
    countsInodes = availableInodes > 0
  }

  init(_ volume: cl_volume) {
    self.init(available: volume.available, total: volume.total, availableInodes: volume.inodes)
    countsInodes = volume.all_inodes > 0
    if volume.block > 0 {
      // What others do not give to all they need for themselves, as btrfs for its metadata.
      reserved = volume.reserved
      keeping = volume.packs_small != 0 ? .blocksOrInode(volume.block) : .blocks(volume.block)
    }
  }

  /// Bytes of the volume that a file with so many bytes, holes not counted, takes at least; where that is
  /// unknown, its bytes.
  public func taken(by bytes: UInt64) -> UInt64 {
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
