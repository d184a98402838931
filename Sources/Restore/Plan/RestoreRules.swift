package import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
package import SystemIO

/// The rules of a restore of a container into a device, which depend on the policy's `restore`
/// (docs/restore.md), the requested part, and the target's contents.
package struct RestoreRules: Sendable {
  /// A directory that is restored empty.
  struct EmptiedDirectory: Sendable {
    let name: ByteString
    /// Its recorded entry; nil in snapshots that do not record it.
    let entry: TreeEntry?
  }

  let policy: CompiledPolicy
  let kind: ContainerKind
  /// The app and the group for policy rules about single ones.
  package var app: String?
  var group: String?
  /// The requested part, as a path in the container; empty for all of it.
  var selection: ByteString = ""
  /// Excluded directories that are restored empty, by their parent directory.
  var emptied: [ByteString: [EmptiedDirectory]] = [:]
  /// Files to generate at the root of a new container, by name.
  var generated: [ByteString: [UInt8]] = [:]
  var anchors = LinkAnchors()
  /// The present contents of the target container.
  var present: ContainerScan?
  /// The destination whose exclusions are not removed (`DeviceRestoreRequest.sparedBy`).
  var sparedBy: Destination
  /// The start of the operation, if a file counts as unchanged only with the stored content
  /// (`ContentProof`).
  var comparesBytesAt: Timestamp?
  /// The suffix for the name of a replaced file that is kept beside the restored one.
  var asideSuffix: ByteString = ""
  /// Whether the root gets the stored metadata; false if it also holds files of other apps.
  var hasOwnRoot = true

  /// Whether the selection is all that belongs to the container in its directory, rather than a
  /// path that the user selected.
  var keepsNoOther = false

  /// Why nothing in the container can be restored; nil if it can.
  var obstacle: String?

  /// Whether the root's own metadata is set.
  var setsRoot: Bool { selection.isEmpty && hasOwnRoot && obstacle == nil }

  /// Whether a path is the one that the user selected.
  func isSelected(_ path: ByteString) -> Bool {
    !selection.isEmpty && !keepsNoOther && path == selection
  }
}

/// The requested data classes, as recorded in the snapshot.
package struct ClassFilter: Sendable {
  let wanted: Set<String>
  private let runs: [ByteString: String]

  package init(_ wanted: Set<String>, _ snapshot: Snapshot) {
    self.wanted = wanted
    runs =
      wanted.isEmpty
      ? [:]
      : Dictionary(snapshot.classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
  }

  /// Creates a filter that knows the snapshot's classes but requests none.
  package init(known snapshot: Snapshot) {
    wanted = []
    runs = Dictionary(snapshot.classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
  }

  var isIdle: Bool { wanted.isEmpty }

  /// Whether data of a class is requested.
  func wants(_ dataClass: String) -> Bool { isIdle || wanted.contains(dataClass) }

  /// Returns the class of an entry, given that of its directory.
  func dataClass(of path: ByteString, in directory: String) -> String { runs[path] ?? directory }

  /// Returns the class of a path, as recorded for it or the nearest directory above it.
  package func dataClass(of path: ByteString) -> String {
    var found = ""
    var here: ByteString = ""
    for name in path.components {
      here = here.appending(name)
      found = runs[here] ?? found
    }
    return found
  }
}
