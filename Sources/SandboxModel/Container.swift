public import SystemIO

/// A container of an app on a device, or a directory that is backed up completely.
public struct Container: Hashable, Sendable {
  public let kind: ContainerKind
  /// The identifier of the app, extension or group, or nil if it is unknown.
  public let identifier: BundleIdentifier?
  public let identification: Identification
  /// The app to which it belongs, or nil for groups, directories and containers without a known
  /// app.
  public let owner: BundleIdentifier?
  /// The path relative to the device's root, as named by the layout; absolute for containers
  /// outside the root, such as Flatpak's settings.
  public let path: ByteString
  /// The real path, with all links resolved.
  public let absolutePath: ByteString
  /// The entry that belongs to the container, or nil if the whole directory does: a Flatpak app's
  /// settings are one file in a directory shared with other apps.
  public let member: ByteString?
  /// The name of its own directory, a UUID if the platform created it, or nil for layouts that name
  /// containers by identifier.
  public let uuid: ByteString?
  /// The name of a snap's revision: `42`, or `x1` for a snap that was not installed from the store.
  public let revision: ByteString?
  /// The time since which this revision has been current, no later than the app's first chance to
  /// change its data: the older of the times of the link `current`. Nil if there is no such link.
  public let inUseSince: Timestamp?
  /// The app's directory in a bundle container: `Example.app`.
  public let bundleDirectory: ByteString?
  /// The name in logical paths, unique in the device.
  public let logical: LogicalContainer
  /// Whether its root could be opened.
  public let isReadable: Bool

  /// The logical path of its root: `apps/com.example.app/data`.
  public let logicalPrefix: ByteString

  /// Creates a container as discovery determined it.
  public init(
    kind: ContainerKind, identifier: BundleIdentifier?, identification: Identification,
    owner: BundleIdentifier?, path: ByteString, absolutePath: ByteString, member: ByteString?,
    uuid: ByteString?, revision: ByteString?, inUseSince: Timestamp?,
    bundleDirectory: ByteString?, logical: LogicalContainer, isReadable: Bool,
    logicalPrefix: ByteString
  ) {
    self.kind = kind
    self.identifier = identifier
    self.identification = identification
    self.owner = owner
    self.path = path
    self.absolutePath = absolutePath
    self.member = member
    self.uuid = uuid
    self.revision = revision
    self.inUseSince = inUseSince
    self.bundleDirectory = bundleDirectory
    self.logical = logical
    self.isReadable = isReadable
    self.logicalPrefix = logicalPrefix
  }

  /// The source of a container's identification.
  public enum Identification: String, Hashable, Sendable, Comparable {
    /// The container's own metadata.
    case metadata
    /// The Info.plist of the bundle in it.
    case infoPlist = "info-plist"
    /// Its location: the layout names containers by identifier.
    case layout
    /// The name of a property list in its `Library/Preferences`, a guess.
    case preferences
    /// The container is not identified.
    case none

    /// Orders by reliability, the most reliable first.
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .infoPlist, .layout: 0
      case .metadata: 1
      case .preferences: 2
      case .none: 3
      }
    }
  }
}

extension Container {
  /// The endings of the names of a SQLite database's log, journal and index (sqlite.org, Temporary
  /// Files Used By SQLite).
  private static let databaseSuffixes = ["-wal", "-journal", "-shm"]

  /// Returns the name of the database to which a file with a name belongs if a file with the
  /// returned name is beside it, or nil.
  public static func database(ofFile name: ByteString) -> ByteString? {
    for suffix in databaseSuffixes where name.count > suffix.utf8.count && name.hasSuffix(suffix) {
      return ByteString(name.bytes.dropLast(suffix.utf8.count))
    }
    return nil
  }

  /// The names of the entries of its directory that can belong to it; nil if all do.
  public var memberNames: [ByteString]? {
    member.map { member in
      [member]
        + (kind == .file
          ? Self.databaseSuffixes.map { member.concatenating(ByteString($0)) } : [])
    }
  }

  /// Whether a path below its directory belongs to the container; false only for entries other than
  /// `member`. The log, the journal and the index of a database that is a single file belong to its
  /// container, since the database is damaged without them.
  public func has(_ inner: ByteString) -> Bool {
    guard let member else { return true }
    if inner.isWithin(member) { return true }
    return kind == .file && Self.database(ofFile: inner) == member
  }
}

/// The purpose of a container, used in `in:` and `containers:` of policies.
public enum ContainerKind: String, CaseIterable, Sendable, Hashable, Comparable {
  /// The app's own code and resources, as installed.
  case bundle
  /// The app's private data.
  case data
  /// The private data of one of the app's extensions.
  case `extension`
  /// Data that several apps share.
  case group
  /// The platform's data about the app outside its containers, such as Flatpak's overrides.
  case settings
  /// The user's data for the current revision of a snap.
  case revision
  /// The data for another revision of a snap, which a refresh copied or kept for a revert.
  case oldRevision = "old-revision"
  /// The system-wide data of a snap, independent of its revision.
  case systemData = "system-data"
  /// The system-wide data for the current revision of a snap.
  case systemRevision = "system-revision"
  /// The configuration of an app or a unit.
  case config
  /// The state of an app or a unit that must survive a restart.
  case state
  /// The data of an app or a unit that it can recreate.
  case cache
  /// The logs of a unit.
  case logs
  /// The runtime data of a unit, which the system removes when the unit stops.
  case runtime
  /// A single file in a base directory beside the directories of apps.
  case file
  /// A plain directory.
  case folder

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// Whether a container of the kind is a single file, named after its app, in a directory with
  /// those of other apps.
  public var isOneFile: Bool { self == .settings || self == .file }
}
