/// The type of an entry, as far as `type:` in a rule distinguishes types.
public enum EntryType: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// A regular file.
  case file
  /// A directory.
  case directory
  /// A symbolic link.
  case symlink
  /// A socket, a pipe or a device.
  case special
  /// A file that belongs to a database, such as its log. A rule for `file` also matches it.
  case database

  var index: Int {
    switch self {
    case .file: 0
    case .directory: 1
    case .symlink: 2
    case .special: 3
    case .database: 4
    }
  }

  /// The types of entries that a rule for this type matches, as a bit mask.
  var meaning: UInt8 {
    self == .file ? Self.bit(.file) | Self.bit(.database) : Self.bit(self)
  }

  static func bit(_ type: EntryType) -> UInt8 { 1 << UInt8(type.index) }

  static let anyMask: UInt8 = 0b11111
}

/// The properties of an entry that conditions of rules test.
public struct EntryFacts: Sendable, Hashable {
  /// The type.
  public var type: EntryType
  /// The size in bytes; not used for directories.
  public var size: Int64
  /// The last change of the content, in seconds since 1970, or nil if it is unknown; then neither
  /// `older-than` nor `newer-than` holds.
  public var modified: Int64?

  /// Creates facts.
  public init(_ type: EntryType, size: Int64 = 0, modified: Int64? = nil) {
    self.type = type
    self.size = size
    self.modified = modified
  }
}
