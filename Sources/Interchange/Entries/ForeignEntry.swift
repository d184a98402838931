internal import ArchiveStore
package import SystemIO

/// An entry of an archive or backup of another program.
package struct ForeignEntry: Hashable, Sendable {
  /// The path below the root of the source; empty for the root itself, whose metadata some formats
  /// have. No component is empty, `.` or `..` or contains a `/` or a NUL (`PathComponents`).
  package var path: [ByteString]
  package var kind: Kind
  /// The permission bits with set-user-id, set-group-id and sticky: 0 to 0o7777.
  package var permissions: UInt16
  package var owner: UInt32
  package var group: UInt32
  package var modified: Timestamp
  /// The extended attributes, including POSIX ACLs in the kernel's form
  /// (`system.posix_acl_access`), in any order, each name at most once.
  package var attributes: [Attribute]
  /// The holes of a file, ascending and apart from each other; empty if it has none or if the
  /// format does not list them before the content. A source may report a hole while it is read
  /// instead (`EntrySource.skipHole`).
  package var holes: [Range<UInt64>]
  /// The version of a file's content, by which the next import recognizes it; nil if the source has
  /// no facts about it.
  var version: ContentVersion?
  /// The stored content of a file that is unchanged since the last import: it has no bytes to read.
  var content: Content?

  /// Creates an entry.
  package init(
    path: [ByteString], kind: Kind, permissions: UInt16? = nil, owner: UInt32 = 0,
    group: UInt32 = 0, modified: Timestamp = Timestamp(seconds: 0),
    attributes: [Attribute] = [], holes: [Range<UInt64>] = []
  ) {
    self.path = path
    self.kind = kind
    self.permissions = permissions ?? kind.usualPermissions
    self.owner = owner
    self.group = group
    self.modified = modified
    self.attributes = attributes
    self.holes = holes
  }

  /// The type of an entry.
  package enum Kind: Hashable, Sendable {
    /// A file with its size in bytes, including holes. The size is the one that the source claims;
    /// an import stores the bytes that it reads.
    case file(size: UInt64)
    case directory
    case symlink(target: ByteString)
    /// Another name of a file that precedes it in the source.
    case hardLink(to: [ByteString])
    case fifo
    case characterDevice(major: UInt32, minor: UInt32)
    case blockDevice(major: UInt32, minor: UInt32)

    /// The permissions of an entry of a format that records none.
    package var usualPermissions: UInt16 {
      switch self {
      case .directory: 0o755
      case .symlink: 0o777
      default: 0o644
      }
    }
  }

  /// An extended attribute.
  package struct Attribute: Hashable, Sendable {
    /// The name with its namespace: `user.comment`.
    package var name: ByteString
    package var value: [UInt8]

    /// Creates an attribute.
    package init(name: ByteString, value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  /// The path for messages.
  package var joinedPath: ByteString { ByteString(joining: path) }
}

/// An app that a backup of another program lists.
package struct ForeignApp: Hashable, Sendable {
  package var identifier: ByteString
  /// The build or version code, if it is known.
  package var build: String?
  /// The version for people, if it is known.
  package var version: String?
  /// The name of the revision that its data is of, in a layout with revisions.
  package var revision: String?

  /// Creates an app.
  package init(
    identifier: ByteString, build: String? = nil, version: String? = nil, revision: String? = nil
  ) {
    self.identifier = identifier
    self.build = build
    self.version = version
    self.revision = revision
  }
}

/// An entry, or a property of one, that was not imported or not exported.
package struct SkippedEntry: Hashable, Sendable {
  /// The path in the source, as the source has it.
  package let path: ByteString
  /// The reason as a clause without its subject, for example "its name contains '..'".
  package let reason: String
  /// Whether the entry itself was taken and only a property of it is missing: a warning (exit
  /// status 0) instead of an incomplete result (exit status 3).
  package let isPropertyOnly: Bool
  /// Whether the entry was taken although it may be wrong: the result is incomplete (exit status
  /// 3).
  package let isSuspect: Bool

  /// Creates a record of a skipped entry.
  package init(
    path: ByteString, reason: String, isPropertyOnly: Bool = false, isSuspect: Bool = false
  ) {
    self.path = path
    self.reason = reason
    self.isPropertyOnly = isPropertyOnly
    self.isSuspect = isSuspect
  }
}

extension SkippedEntry {
  /// The maximum number of bytes of the path in a record; one of an archive may have a megabyte.
  package static let pathLimit = 4096
  /// The maximum number of bytes of the reason in a record, which may contain names.
  package static let reasonLimit = 1024

  /// The record with the beginnings of a path and a reason that are too long.
  fileprivate var shortened: SkippedEntry {
    if path.count <= Self.pathLimit, reason.utf8.count <= Self.reasonLimit { return self }
    return SkippedEntry(
      path: ByteString(path.bytes.prefix(Self.pathLimit)),
      reason: String(decoding: reason.utf8.prefix(Self.reasonLimit), as: UTF8.self),
      isPropertyOnly: isPropertyOnly, isSuspect: isSuspect)
  }
}

/// Records of skipped entries: all are counted, and the first ones are kept.
package struct SkippedEntries: Sendable, Hashable {
  /// The first records, at most `limit`.
  package private(set) var listed: [SkippedEntry] = []
  /// The number of entries that are missing or suspect.
  package private(set) var entryCount = 0
  /// The number of those of a kind that the format never holds, such as bundles of apps. They are
  /// not listed, and do not make a result incomplete.
  package private(set) var expectedCount = 0
  /// The number of records about properties only.
  package private(set) var propertyCount = 0

  /// The number of records that are kept: a source of millions of damaged entries must not fill
  /// memory.
  package static let limit = 10_000

  /// Creates an empty list.
  package init() {}

  package var isEmpty: Bool { entryCount + propertyCount == 0 }

  /// Adds a record.
  package mutating func append(_ entry: SkippedEntry) {
    if entry.isPropertyOnly { propertyCount += 1 } else { entryCount += 1 }
    if listed.count < Self.limit { listed.append(entry.shortened) }
  }

  /// Adds a record.
  package mutating func append(path: ByteString, reason: String, isPropertyOnly: Bool = false) {
    append(SkippedEntry(path: path, reason: reason, isPropertyOnly: isPropertyOnly))
  }

  /// Counts an entry of a kind that the format never holds.
  mutating func appendExpected() {
    entryCount += 1
    expectedCount += 1
  }

  /// Adds all records of another list.
  package mutating func append(_ other: SkippedEntries) {
    entryCount += other.entryCount
    expectedCount += other.expectedCount
    propertyCount += other.propertyCount
    listed += other.listed.prefix(Self.limit - min(Self.limit, listed.count))
  }

  /// Adds all records of another list, with a path before theirs.
  mutating func append(_ other: SkippedEntries, below path: ByteString) {
    entryCount += other.entryCount
    expectedCount += other.expectedCount
    propertyCount += other.propertyCount
    for entry in other.listed.prefix(Self.limit - min(Self.limit, listed.count)) {
      let whole = SkippedEntry(
        path: path.appending(entry.path), reason: entry.reason,
        isPropertyOnly: entry.isPropertyOnly, isSuspect: entry.isSuspect)
      listed.append(whole.shortened)
    }
  }
}

/// The names of users and groups by number.
package struct OwnerNames: Hashable, Sendable {
  package private(set) var users: [UInt32: String] = [:]
  package private(set) var groups: [UInt32: String] = [:]

  /// The maximum number of names of each kind, since a stranger wrote them.
  static let limit = 10_000
  /// The maximum length of a name in bytes (`LOGIN_NAME_MAX` of Linux).
  static let lengthLimit = 256

  /// Creates empty tables.
  package init() {}

  /// Creates tables from a snapshot's.
  package init(users: [(UInt32, String)], groups: [(UInt32, String)]) {
    self.users = Dictionary(users, uniquingKeysWith: { $1 })
    self.groups = Dictionary(groups, uniquingKeysWith: { $1 })
  }

  /// Adds a user's name unless it is empty, not text, or one name too many.
  mutating func add(user id: UInt32, name: [UInt8]) { Self.add(id, name, to: &users) }

  /// Adds a group's name in the same way.
  mutating func add(group id: UInt32, name: [UInt8]) { Self.add(id, name, to: &groups) }

  /// Adds the names of another table for numbers that have none.
  mutating func add(_ other: OwnerNames) {
    for (id, name) in other.users { Self.add(id, Array(name.utf8), to: &users) }
    for (id, name) in other.groups { Self.add(id, Array(name.utf8), to: &groups) }
  }

  private static func add(_ id: UInt32, _ name: [UInt8], to table: inout [UInt32: String]) {
    guard !name.isEmpty, name.count <= lengthLimit, table[id] == nil, table.count < limit,
      let text = String(validating: name, as: UTF8.self)
    else { return }
    table[id] = text
  }
}
