public import SystemIO

/// A number of files and the sum of their sizes in bytes.
public struct EntryTotals: Sendable, Hashable, BitwiseCopyable {
  public var files = 0
  public var bytes: UInt64 = 0

  /// Creates empty totals.
  public init() {}

  /// Adds an entry if it is a file.
  public mutating func add(_ status: FileStatus) {
    guard status.kind == .file else { return }
    files += 1
    bytes.addClamping(status.size)
  }

  /// Adds other totals.
  public mutating func add(_ other: EntryTotals) {
    files += other.files
    bytes.addClamping(other.bytes)
  }
}

extension DeviceScan {
  /// The maximum that a snapshot of the scan stores: that of a first snapshot. How much of it a
  /// repository already has is known only once it is open.
  public var storageBound: EntryTotals {
    var (bound, seen) = (EntryTotals(), Set<FileIdentity>())
    for container in containers where container.entries.first?.selection != .excluded {
      for entry in container.entries
      where entry.status.kind == .file && entry.selection != .excluded {
        if !seen.isFirst(entry.status) { continue }
        bound.files += 1
        bound.bytes.addClamping(entry.status.storedBytes)
      }
    }
    return bound
  }
}

extension FileStatus {
  /// The maximum number of bytes that a file's content takes in a repository: holes take none.
  public var storedBytes: UInt64 { min(size, allocated) }
}

extension Set<FileIdentity> {
  /// Returns whether this is the first name of a file, and records the file.
  public mutating func isFirst(_ status: FileStatus) -> Bool {
    status.links <= 1 || insert(status.identity).inserted
  }
}
