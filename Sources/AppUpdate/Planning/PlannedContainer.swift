package import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The planned change of one container.
package struct PlannedContainer: Sendable {
  /// The logical path.
  package let path: ByteString
  package let logical: LogicalContainer
  package let action: Action
  /// Its current directory, absolute; for a macOS bundle the bundle itself.
  package let from: ByteString?
  /// Its directory after the operation.
  package let to: ByteString?
  /// The planned outcomes of its content: the topmost paths of one outcome and class, each with
  /// everything below it except paths listed separately.
  package internal(set) var paths: [Path] = []
  /// Absolute links that name a container which moves to another directory, with their new targets.
  package internal(set) var links: [Link] = []
  /// Absolute links to other targets, which do not change.
  package internal(set) var foreignLinks: [PathRemark] = []
  /// The entries to move to the trash, if the container as a whole stays.
  var drops: [Drop] = []
  /// The index of the container in the plan's scan.
  var scanned: Int?
  /// The entries from outside that move into it when it is created.
  package internal(set) var moves: [Move] = []
  /// The entries from outside that cannot be moved, with the reason.
  package internal(set) var notMoved: [PathRemark] = []
  /// The entries restored from the trash of the update that is rolled back.
  package internal(set) var trashRestores: [TrashRestore] = []
  /// The paths in it that become links to the same paths of the home directory.
  var ownLinks: [ByteString] = []
  /// The directory that one rename puts in place: the container's own, or the one above it if that
  /// does not exist either.
  var top: ByteString?

  init(_ logical: LogicalContainer, _ action: Action, from: ByteString?, to: ByteString?) {
    path = logical.prefix
    self.logical = logical
    self.action = action
    self.from = from
    self.to = to
  }

  /// Returns the directories that the platform creates in a new data container (File System
  /// Programming Guide, iOS Standard Directories and macOS Library Directory Details).
  static func standardDirectories(_ layout: Layout) -> [ByteString] {
    let all: [ByteString] = ["Documents", "Library/Caches", "Library/Preferences", "tmp"]
    return layout == .macOS ? all + ["Library/Application Support"] : all
  }

  /// The planned change of a container as a whole.
  package enum Action: String, CaseIterable, Sendable, Hashable {
    /// It stays at its location.
    case keep
    /// It moves to another directory with its content, by one rename.
    case move
    /// The content of the package or snapshot replaces it; the old container moves to the trash.
    case replace
    /// It is created.
    case make
    /// It is moved from the safe harbor to its location.
    case adopt
    /// It moves to the trash.
    case remove
    /// It is copied for another revision.
    case copy
    /// Its content is restored from a snapshot.
    case restore

    /// Whether the container as a whole moves or is replaced.
    var isExchange: Bool { self != .keep && self != .copy && self != .restore }
  }

  /// A path of a container with its planned outcome, which applies to everything below it that is
  /// not listed separately.
  package struct Path: Sendable, Hashable {
    /// The logical path.
    package let path: ByteString
    package let outcome: DataOutcome
    package let dataClass: DataClass
    package internal(set) var totals = EntryTotals()
  }

  /// A link that is rewritten because the container that it names moves to another directory.
  package struct Link: Sendable, Hashable {
    /// The link's logical path.
    package let path: ByteString
    package let before: ByteString
    package let after: ByteString
    /// Its path in the container.
    let inner: ByteString
    /// The link as the scan found it.
    let status: FileStatus
  }

  /// An entry of a container that moves to the trash with everything below it.
  struct Drop: Sendable, Hashable {
    /// Its entry in the scan.
    let entry: Int
    /// Its path in the container.
    let inner: ByteString
    /// Whether an empty directory replaces it.
    let leavesEmptyDirectory: Bool
  }

  /// An entry outside that moves into a container when that is created.
  package struct Move: Sendable, Hashable {
    /// Its current path, absolute.
    package let from: ByteString
    /// Its path in the container.
    package let inner: ByteString
    let status: FileStatus
  }

  /// An entry that an update moved to the trash and that its snapshot does not contain, such as a
  /// cache or data removed by `--strict`. A rollback restores it by a rename.
  package struct TrashRestore: Sendable, Hashable {
    /// Its path in the container.
    package let inner: ByteString
    /// Its path in the trash, absolute.
    package let from: ByteString
    package let dataClass: DataClass
    package let totals: EntryTotals
  }
}
