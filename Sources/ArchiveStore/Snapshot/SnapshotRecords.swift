public import Codecs
public import SystemIO

/// The part of a device that a snapshot covers.
public enum Scope: Hashable, Sendable {
  case device
  /// Only these apps, by identifier.
  case apps([String])
}

/// The reason for a snapshot. It is a word, so that reasons of newer versions are preserved.
public struct Reason: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  /// Creates a reason from its word.
  public init(rawValue: String) { self.rawValue = rawValue }

  public static let manual = Reason(rawValue: "manual")
  public static let scheduled = Reason(rawValue: "scheduled")
  public static let preUpdate = Reason(rawValue: "pre-update")
  public static let preRestore = Reason(rawValue: "pre-restore")
  public static let preRollback = Reason(rawValue: "pre-rollback")
  public static let uninstall = Reason(rawValue: "uninstall")
}

/// The device that was backed up.
public struct DeviceRecord: Hashable, Sendable {
  /// The unique identity of the device.
  public var identity: String
  public var platform: String
  public var layout: String
  /// The root directory of the device.
  public var root: ByteString
  public var osVersion: String?
  public var containers: [ContainerRecord]

  /// Creates a record.
  public init(
    identity: String, platform: String, layout: String, root: ByteString,
    osVersion: String? = nil, containers: [ContainerRecord] = []
  ) {
    self.identity = identity
    self.platform = platform
    self.layout = layout
    self.root = root
    self.osVersion = osVersion
    self.containers = containers
  }
}

/// A container and its location.
public struct ContainerRecord: Hashable, Sendable {
  /// The logical path of the container.
  public var path: ByteString
  public var uuid: String?
  /// The name of the revision, if the layout has revisions.
  public var revision: String?
  /// The path on the device at the time of the run.
  public var realPath: ByteString

  /// Creates a record.
  public init(
    path: ByteString, uuid: String? = nil, revision: String? = nil, realPath: ByteString
  ) {
    self.path = path
    self.uuid = uuid
    self.revision = revision
    self.realPath = realPath
  }
}

/// An app that was backed up.
public struct AppRecord: Hashable, Sendable {
  public var identifier: String
  public var name: String?
  public var version: String?
  public var build: String?
  /// The logical paths of its containers.
  public var containers: [ByteString]
  /// The groups in which it shares data.
  public var groups: [GroupRecord] = []
  /// The installation source of a Flatpak app.
  public var flatpak: FlatpakRecord?

  /// Creates a record.
  public init(
    identifier: String, name: String? = nil, version: String? = nil, build: String? = nil,
    containers: [ByteString] = []
  ) {
    self.identifier = identifier
    self.name = name
    self.version = version
    self.build = build
    self.containers = containers
  }
}

/// The membership of an app in a group.
public struct GroupRecord: Hashable, Sendable {
  /// The identifier of the group.
  public var identifier: String
  /// Whether the membership is known from an entitlement or a policy, not guessed.
  public var isKnown: Bool

  /// Creates a record.
  public init(identifier: String, isKnown: Bool) {
    self.identifier = identifier
    self.isKnown = isKnown
  }
}

/// The installed version of a Flatpak app and its source.
public struct FlatpakRecord: Hashable, Sendable {
  /// The installation: `user` or `system`.
  public var scope: String
  public var architecture: String
  public var branch: String
  /// The checksum of the deployed commit.
  public var commit: String
  /// The remote's name and URL, if known.
  public var origin: String?
  public var url: String?
  public var runtime: String?

  /// Creates a record.
  public init(
    scope: String, architecture: String, branch: String, commit: String, origin: String? = nil,
    url: String? = nil, runtime: String? = nil
  ) {
    self.scope = scope
    self.architecture = architecture
    self.branch = branch
    self.commit = commit
    self.origin = origin
    self.url = url
    self.runtime = runtime
  }
}

/// The policy of the run.
public struct PolicyRecord: Hashable, Sendable {
  public var name: String
  /// The digest of all layers of the policy.
  public var digest: Digest

  /// Creates a record.
  public init(name: String, digest: Digest) {
    self.name = name
    self.digest = digest
  }
}

/// The totals of a snapshot.
public struct Totals: Hashable, Sendable {
  public var entries: UInt64 = 0
  public var files: UInt64 = 0
  /// The bytes of the files' contents. A hard-linked file counts once.
  public var bytes: UInt64 = 0
  /// The bytes that this run added to packs.
  public var stored: UInt64 = 0
  public var classes: [ClassTotal] = []

  /// Creates empty totals.
  public init() {}
}

/// The totals of one data class in a snapshot.
public struct ClassTotal: Hashable, Sendable {
  public var name: String
  public var files: UInt64
  public var bytes: UInt64

  /// Creates a total.
  public init(name: String, files: UInt64, bytes: UInt64) {
    self.name = name
    self.files = files
    self.bytes = bytes
  }
}

/// The data class of a path and everything below it, up to a deeper path with another run.
public struct ClassRun: Hashable, Sendable {
  public var path: ByteString
  public var name: String

  /// Creates a run.
  public init(path: ByteString, name: String) {
    self.path = path
    self.name = name
  }
}

/// The id and name of a user or group.
public struct NameRecord: Hashable, Sendable {
  public var id: UInt32
  public var name: String

  /// Creates a record.
  public init(id: UInt32, name: String) {
    self.id = id
    self.name = name
  }
}

/// Content that a rule excluded from the snapshot.
public struct Exclusion: Hashable, Sendable {
  public var path: ByteString
  public var rule: String
  public var files: UInt64
  public var bytes: UInt64
  /// The directory itself, if a restore creates it again, empty: its mode, owner, times, attributes
  /// and flags. Its tree is not used, and its attributes are inline.
  public var directory: TreeEntry?

  /// The placeholder for a rule in a record that summarizes unlisted exclusions below its path. No
  /// rule has this name.
  public static let unnamed = "too many to name"

  /// Creates a record.
  public init(
    path: ByteString, rule: String, files: UInt64, bytes: UInt64, directory: TreeEntry? = nil
  ) {
    self.path = path
    self.rule = rule
    self.files = files
    self.bytes = bytes
    self.directory = directory
  }
}

/// A note on a path.
public struct PathNote: Hashable, Sendable {
  public var path: ByteString
  public var note: String

  /// Creates a note.
  public init(path: ByteString, note: String) {
    self.path = path
    self.note = note
  }
}

/// A database and its capture method.
public struct DatabaseRecord: Hashable, Sendable {
  public var path: ByteString
  public var how: String

  /// Creates a record.
  public init(path: ByteString, how: String) {
    self.path = path
    self.how = how
  }
}

/// The source of a copied snapshot.
public struct Original: Hashable, Sendable {
  public var repository: Digest
  public var id: SnapshotID

  /// Creates a record.
  public init(repository: Digest, id: SnapshotID) {
    self.repository = repository
    self.id = id
  }
}
