internal import ArchiveStore
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// What comes back of a container and as what, when it is restored into a device: by the `restore`
/// of the policy (docs/restore.md), the part that is asked for, and what the target has.
struct RestoreRules: Sendable {
  let policy: CompiledPolicy
  let kind: ContainerKind
  /// The app and the group that rules of single ones go by.
  var app: String?
  var group: String?
  /// The part that is asked for, by its path in the container; empty for all of it.
  var selection: ByteString = ""
  /// Directories that the snapshot left out and that come back empty, by the directory that they are in.
  var emptied: [ByteString: [EmptiedDirectory]] = [:]
  /// Files that the layout writes anew at the root of a container that is made.
  var generated: [ByteString: [UInt8]] = [:]
  var anchors = LinkAnchors()
  /// What is in the target's container now.
  var present: ContainerScan?
  /// When the operation began, where a file counts as unchanged only with the stored bytes
  /// (`ContentProof`).
  var comparesBytesAt: Timestamp?
  /// What is put behind the name of a file that gives way and has to stay beside what is restored.
  var asideSuffix: ByteString = ""
  /// Whether the root gets the stored metadata; not where other apps' files lie in it, too.
  var hasOwnRoot = true

  /// Whether the selection is all that the container has of its directory, and nothing that somebody
  /// asked for by itself.
  var keepsNoOther = false

  /// Whether the root's own metadata is set.
  var setsRoot: Bool { selection.isEmpty && hasOwnRoot }

  /// Whether a path is what was asked for by itself.
  func isSelected(_ path: ByteString) -> Bool {
    !selection.isEmpty && !keepsNoOther && path == selection
  }
}

/// A directory that comes back empty.
struct EmptiedDirectory: Sendable {
  let name: ByteString
  /// How it was; nil in snapshots that do not tell.
  let entry: TreeEntry?
}

/// What a restore does with an entry of the snapshot, as the request and the policy say.
enum RestoreRole: Sendable {
  /// It comes back as it was stored.
  case whole
  /// A directory on the way to what comes back: it is made only where it is missing and needed.
  case way
  /// A directory that comes back empty.
  case empty
  /// It does not come back.
  case skip
  /// It does not come back, and what the target has there goes.
  case remove
}

/// What holds for the entries of a directory.
struct RestoreFrame {
  /// The policy's state of the directory.
  var state: Classifier.State?
  /// The data class of the directory, where classes were asked for.
  var dataClass = ""
  /// Whether the directory is what was asked for, or lies in it.
  var isInside = true
  /// Whether it was asked for by name though the policy would not restore it.
  var isForced = false
  /// How many directories lie above it in the container.
  var depth = 0
}

/// Which data classes are asked for, by what the snapshot noted of them.
struct ClassFilter: Sendable {
  let wanted: Set<String>
  private let runs: [ByteString: String]

  init(_ wanted: Set<String>, _ snapshot: Snapshot) {
    self.wanted = wanted
    runs =
      wanted.isEmpty
      ? [:]
      : Dictionary(snapshot.classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
  }

  /// What a snapshot noted of classes, where none is asked for.
  init(known snapshot: Snapshot) {
    wanted = []
    runs = Dictionary(snapshot.classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
  }

  var isIdle: Bool { wanted.isEmpty }

  /// The class of an entry in a directory of another.
  func dataClass(of path: ByteString, in directory: String) -> String { runs[path] ?? directory }

  /// The class of a path, by the nearest that is noted at or above it.
  func dataClass(of path: ByteString) -> String {
    var found = ""
    var here: ByteString = ""
    for name in path.components {
      here = here.appending(name)
      found = runs[here] ?? found
    }
    return found
  }
}
