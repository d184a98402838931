internal import ArchiveStore
package import SystemIO

/// The number of entries of each kind, and the size of their files.
package struct RestoreTotals: Sendable, Hashable {
  package var files = 0
  package var directories = 0
  package var links = 0
  package var specials = 0
  /// The size of the files in bytes, including holes.
  package var bytes: UInt64 = 0

  /// Creates empty totals.
  package init() {}

  /// The total number of entries.
  package var entries: Int { files + directories + links + specials }

  package mutating func count(_ kind: FileKind, size: UInt64) {
    switch kind {
    case .file:
      files += 1
      bytes.addClamping(size)
    case .directory: directories += 1
    case .symlink: links += 1
    case .fifo, .socket, .characterDevice, .blockDevice: specials += 1
    }
  }

  package mutating func subtract(_ other: RestoreTotals) {
    files -= other.files
    directories -= other.directories
    links -= other.links
    specials -= other.specials
    bytes -= Swift.min(bytes, other.bytes)
  }

  /// Adds other totals to these.
  package mutating func add(_ other: RestoreTotals) {
    files += other.files
    directories += other.directories
    links += other.links
    specials += other.specials
    bytes.addClamping(other.bytes)
  }
}
