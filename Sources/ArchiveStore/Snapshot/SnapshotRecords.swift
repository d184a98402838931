public import Codecs
public import SystemIO

/// What of a device a snapshot is of.
public enum Scope: Hashable, Sendable {
  case device
  /// Only these apps, by identifier.
  case apps([String])
}

/// Why a snapshot was made; a word, so that one of a newer version is kept.
public struct Reason: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  /// Makes a reason of its word.
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
  /// What tells it from every other device.
  public var identity: String
  public var platform: String
  public var layout: String
  /// Its root directory.
  public var root: ByteString
  public var osVersion: String?
  public var containers: [ContainerRecord]

  /// Makes a record.
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

/// A container and where it lay.
public struct ContainerRecord: Hashable, Sendable {
  /// Its logical path.
  public var path: ByteString
  public var uuid: String?
  /// The name of the revision that it was of, where the layout has revisions.
  public var revision: String?
  /// Its real path on the device at the time.
  public var realPath: ByteString

  /// Makes a record.
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
  /// The groups that it shares data in.
  public var groups: [GroupRecord] = []
  /// Where it was installed from, for an app of Flatpak.
  public var flatpak: FlatpakRecord?

  /// Makes a record.
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

/// That an app belongs to a group.
public struct GroupRecord: Hashable, Sendable {
  /// The group's identifier.
  public var identifier: String
  /// Whether an entitlement or a policy said so, and it was no guess.
  public var isKnown: Bool

  /// Makes a record.
  public init(identifier: String, isKnown: Bool) {
    self.identifier = identifier
    self.isKnown = isKnown
  }
}

/// What was installed of a Flatpak app, and from where.
public struct FlatpakRecord: Hashable, Sendable {
  /// `user` or `system`.
  public var scope: String
  public var architecture: String
  public var branch: String
  /// The checksum of the deployed commit.
  public var commit: String
  /// The remote's name and address, where they were known.
  public var origin: String?
  public var url: String?
  public var runtime: String?

  /// Makes a record.
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

/// The policy that decided.
public struct PolicyRecord: Hashable, Sendable {
  public var name: String
  /// Of all its layers.
  public var digest: Digest

  /// Makes a record.
  public init(name: String, digest: Digest) {
    self.name = name
    self.digest = digest
  }
}

/// Counts and bytes of what a snapshot holds.
public struct Totals: Hashable, Sendable {
  public var entries: UInt64 = 0
  public var files: UInt64 = 0
  /// Bytes of the files' contents; a hard-linked file counts once.
  public var bytes: UInt64 = 0
  /// Bytes that this run added to the packs.
  public var stored: UInt64 = 0
  public var classes: [ClassTotal] = []

  /// Makes totals of nothing.
  public init() {}
}

/// What a snapshot holds of one data class.
public struct ClassTotal: Hashable, Sendable {
  public var name: String
  public var files: UInt64
  public var bytes: UInt64

  /// Makes a total.
  public init(name: String, files: UInt64, bytes: UInt64) {
    self.name = name
    self.files = files
    self.bytes = bytes
  }
}

/// The data class of a path and of all below it, up to where another run is nearer.
public struct ClassRun: Hashable, Sendable {
  public var path: ByteString
  public var name: String

  /// Makes a run.
  public init(path: ByteString, name: String) {
    self.path = path
    self.name = name
  }
}

/// A number of an owner or a group and its name.
public struct NameRecord: Hashable, Sendable {
  public var id: UInt32
  public var name: String

  /// Makes a record.
  public init(id: UInt32, name: String) {
    self.id = id
    self.name = name
  }
}

/// What a rule kept out of the snapshot.
public struct Exclusion: Hashable, Sendable {
  public var path: ByteString
  public var rule: String
  public var files: UInt64
  public var bytes: UInt64
  /// The directory itself, where a restore makes it anew, empty: its mode, owner, times, attributes and
  /// flags. Its tree means nothing, and attributes are inline.
  public var directory: TreeEntry?

  /// Stands in the place of a rule where a record is of all in its path that is not named, as there is
  /// too much of it. No rule is called so.
  public static let unnamed = "too many to name"

  /// Makes a record.
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

/// A path and what is to be said of it.
public struct PathNote: Hashable, Sendable {
  public var path: ByteString
  public var note: String

  /// Makes a note.
  public init(path: ByteString, note: String) {
    self.path = path
    self.note = note
  }
}

/// A database and how it was captured.
public struct DatabaseRecord: Hashable, Sendable {
  public var path: ByteString
  public var how: String

  /// Makes a record.
  public init(path: ByteString, how: String) {
    self.path = path
    self.how = how
  }
}

/// The snapshot that a copy was made of.
public struct Original: Hashable, Sendable {
  public var repository: Digest
  public var id: SnapshotID

  /// Makes a record.
  public init(repository: Digest, id: SnapshotID) {
    self.repository = repository
    self.id = id
  }
}
