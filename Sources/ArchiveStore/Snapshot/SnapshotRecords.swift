package import Codecs
package import SystemIO

/// The part of a device that a snapshot covers.
package enum Scope: Hashable, Sendable {
  case device
  /// Only these apps, by identifier.
  case apps([String])
}

/// The reason for a snapshot. It is a word, so that reasons of newer versions are preserved.
package struct Reason: RawRepresentable, Hashable, Sendable {
  package let rawValue: String

  /// Creates a reason from its word.
  package init(rawValue: String) { self.rawValue = rawValue }

  package static let manual = Reason(rawValue: "manual")
  package static let scheduled = Reason(rawValue: "scheduled")
  package static let preUpdate = Reason(rawValue: "pre-update")
  package static let preRestore = Reason(rawValue: "pre-restore")
  package static let preRollback = Reason(rawValue: "pre-rollback")
  package static let uninstall = Reason(rawValue: "uninstall")
}

/// The device that was backed up.
package struct DeviceRecord: Hashable, Sendable {
  /// The unique identity of the device.
  package var identity: String
  package var platform: String
  package var layout: String
  /// The root directory of the device.
  package var root: ByteString
  package var osVersion: String?
  package var containers: [ContainerRecord]

  /// Creates a record.
  package init(
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
package struct ContainerRecord: Hashable, Sendable {
  /// The logical path of the container.
  package var path: ByteString
  package var uuid: String?
  /// The name of the revision, if the layout has revisions.
  package var revision: String?
  /// The path on the device at the time of the run.
  package var realPath: ByteString

  /// Creates a record.
  package init(
    path: ByteString, uuid: String? = nil, revision: String? = nil, realPath: ByteString
  ) {
    self.path = path
    self.uuid = uuid
    self.revision = revision
    self.realPath = realPath
  }
}

/// An app that was backed up.
package struct AppRecord: Hashable, Sendable {
  package var identifier: String
  package var name: String?
  package var version: String?
  package var build: String?
  /// The logical paths of its containers.
  package var containers: [ByteString]
  /// The groups in which it shares data.
  package var groups: [GroupRecord] = []
  /// The installation source of a Flatpak app.
  package var flatpak: FlatpakRecord?

  /// Creates a record.
  package init(
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
package struct GroupRecord: Hashable, Sendable {
  /// The identifier of the group.
  package var identifier: String
  /// Whether the membership is known from an entitlement or a policy, not guessed.
  package var isKnown: Bool

  /// Creates a record.
  package init(identifier: String, isKnown: Bool) {
    self.identifier = identifier
    self.isKnown = isKnown
  }
}

/// The installed version of a Flatpak app and its source.
package struct FlatpakRecord: Hashable, Sendable {
  /// The installation: `user` or `system`.
  package var scope: String
  package var architecture: String
  package var branch: String
  /// The checksum of the deployed commit.
  package var commit: String
  /// The remote's name and URL, if known.
  package var origin: String?
  package var url: String?
  package var runtime: String?

  /// Creates a record.
  package init(
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
package struct PolicyRecord: Hashable, Sendable {
  package var name: String
  /// The digest of all layers of the policy.
  package var digest: Digest

  /// Creates a record.
  package init(name: String, digest: Digest) {
    self.name = name
    self.digest = digest
  }
}

/// The totals of a snapshot.
package struct Totals: Hashable, Sendable {
  package var entries: UInt64 = 0
  package var files: UInt64 = 0
  /// The bytes of the files' contents. A hard-linked file counts once.
  package var bytes: UInt64 = 0
  /// The bytes that this run added to packs.
  package var stored: UInt64 = 0
  package var classes: [ClassTotal] = []

  /// Creates empty totals.
  package init() {}
}

/// The totals of one data class in a snapshot.
package struct ClassTotal: Hashable, Sendable {
  package var name: String
  package var files: UInt64
  package var bytes: UInt64

  /// Creates a total.
  package init(name: String, files: UInt64, bytes: UInt64) {
    self.name = name
    self.files = files
    self.bytes = bytes
  }
}

/// The data class of a path and everything below it, up to a deeper path with another run.
package struct ClassRun: Hashable, Sendable {
  package var path: ByteString
  package var name: String

  /// Creates a run.
  package init(path: ByteString, name: String) {
    self.path = path
    self.name = name
  }
}

/// The id and name of a user or group.
package struct NameRecord: Hashable, Sendable {
  package var id: UInt32
  package var name: String

  /// Creates a record.
  package init(id: UInt32, name: String) {
    self.id = id
    self.name = name
  }
}

/// Content that a rule excluded from the snapshot.
package struct Exclusion: Hashable, Sendable {
  package var path: ByteString
  package var rule: String
  package var files: UInt64
  package var bytes: UInt64
  /// The directory itself, if a restore creates it again, empty: its mode, owner, times, attributes
  /// and flags. Its tree is not used, and its attributes are inline.
  package var directory: TreeEntry?

  /// The placeholder for a rule in a record that summarizes unlisted exclusions below its path. No
  /// rule has this name.
  package static let unnamed = "too many to name"

  /// Creates a record.
  package init(
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
package struct PathNote: Hashable, Sendable {
  package var path: ByteString
  package var note: String

  /// Creates a note.
  package init(path: ByteString, note: String) {
    self.path = path
    self.note = note
  }
}

/// A database and its capture method.
package struct DatabaseRecord: Hashable, Sendable {
  package var path: ByteString
  package var how: String

  /// Creates a record.
  package init(path: ByteString, how: String) {
    self.path = path
    self.how = how
  }
}

/// The source of a copied snapshot.
package struct Original: Hashable, Sendable {
  package var repository: Digest
  package var id: SnapshotID

  /// Creates a record.
  package init(repository: Digest, id: SnapshotID) {
    self.repository = repository
    self.id = id
  }
}
