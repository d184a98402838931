/// What an entry is, as far as a rule's `type:` tells.
public enum EntryType: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// A regular file.
  case file
  /// A directory.
  case directory
  /// A symbolic link.
  case symlink
  /// A socket, a pipe or a device.
  case special
  /// A file that is a database's, alone or with its log. A rule for `file` means it too.
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

  /// The types of entries that a rule for this type means, a bit each.
  var meaning: UInt8 {
    self == .file ? Self.bit(.file) | Self.bit(.database) : Self.bit(self)
  }

  static func bit(_ type: EntryType) -> UInt8 { 1 << UInt8(type.index) }

  static let anyMask: UInt8 = 0b11111
}

/// What rules with conditions ask about an entry.
public struct EntryFacts: Sendable, Hashable {
  /// What it is.
  public var type: EntryType
  /// Its size in bytes; nothing is asked about a directory's.
  public var size: Int64
  /// When its content last changed, in seconds since 1970; nothing where that is not known, and
  /// then neither `older-than` nor `newer-than` holds.
  public var modified: Int64?

  /// Makes facts.
  public init(_ type: EntryType, size: Int64 = 0, modified: Int64? = nil) {
    self.type = type
    self.size = size
    self.modified = modified
  }
}
