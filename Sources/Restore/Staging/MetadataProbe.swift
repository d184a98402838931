internal import ArchiveStore
package import SystemIO

/// The number of restored entries whose metadata a file system does not keep, although it reported
/// no error: some ignore the mode, or round or limit times (docs/restore.md, "Owners").
package struct UnkeptMetadata: Sendable, Hashable {
  /// The device number of the file system.
  package let device: UInt64
  /// A directory on it.
  package let directory: ByteString
  /// The entries that have another mode than the stored one.
  package internal(set) var modes = 0
  /// The entries that have another modification time than the stored one.
  package internal(set) var times = 0

  /// Returns the numbers with those of the same file system added up, in the order in which the
  /// file systems were written to.
  static func merging(_ all: [UnkeptMetadata]) -> [UnkeptMetadata] {
    var merged: [UnkeptMetadata] = []
    for unkept in all {
      guard let index = merged.firstIndex(where: { $0.device == unkept.device }) else {
        merged.append(unkept)
        continue
      }
      merged[index].modes += unkept.modes
      merged[index].times += unkept.times
    }
    return merged
  }
}

/// A test whether a file system keeps modes and times as they are set, with one file in the staging
/// directory. Only if it does not is the metadata of each entry read again after it was set, which
/// would otherwise cost a call for each file.
enum MetadataProbe {
  private static let name: ByteString = "probe"
  private static let mode: UInt16 = 0o751
  /// A time that is not a multiple of a unit that file systems round to: seconds, two seconds on
  /// FAT, 100 nanoseconds on NTFS and SMB.
  private static let time = Timestamp(seconds: 1_700_000_001, nanoseconds: 123_456_789)

  /// Whether the file system of a directory keeps the modes and the times of a plan. False if that
  /// cannot be determined.
  static func isExact(for tree: PlannedTree, in directory: borrowing Directory) -> Bool {
    guard let file = try? directory.create(name, permissions: 0o600) else { return false }
    let isExact = (try? keeps(times(of: tree), file)) ?? false
    try? file.close()
    try? directory.remove(name)
    return isExact
  }

  private static func keeps(
    _ times: [Timestamp], _ file: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    try file.setPermissions(mode)
    if try file.status().permissions != mode { return false }
    for time in times {
      try file.setModified(time)
      if try file.status().modified != time { return false }
    }
    return true
  }

  /// The times to test: the earliest and the latest one, which may be beyond what the file system
  /// can record, and one between two of its units.
  private static func times(of tree: PlannedTree) -> [Timestamp] {
    var (earliest, latest) = (time, time)
    for entry in tree.entries where entry.action != .leave && entry.hasMetadata {
      earliest = min(earliest, entry.modified)
      latest = max(latest, entry.modified)
    }
    return Set([time, earliest, latest]).sorted()
  }
}
