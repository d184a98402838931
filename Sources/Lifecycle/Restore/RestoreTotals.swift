internal import ArchiveStore
internal import SystemIO

/// Entries by kind, and the bytes of their files.
public struct RestoreTotals: Sendable, Hashable {
  public var files = 0
  public var directories = 0
  public var links = 0
  public var specials = 0
  /// Bytes of the files, holes counted.
  public var bytes: UInt64 = 0

  /// Makes totals of nothing.
  public init() {}

  /// How many entries there are in all.
  public var entries: Int { files + directories + links + specials }

  mutating func count(_ kind: FileKind, size: UInt64) {
    switch kind {
    case .file:
      files += 1
      bytes.addClamping(size)
    case .directory: directories += 1
    case .symlink: links += 1
    case .fifo, .socket, .characterDevice, .blockDevice: specials += 1
    }
  }

  mutating func subtract(_ other: RestoreTotals) {
    files -= other.files
    directories -= other.directories
    links -= other.links
    specials -= other.specials
    bytes -= Swift.min(bytes, other.bytes)
  }

  /// Adds others to these.
  public mutating func add(_ other: RestoreTotals) {
    files += other.files
    directories += other.directories
    links += other.links
    specials += other.specials
    bytes.addClamping(other.bytes)
  }
}
