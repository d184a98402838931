internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A part of a scan that one thread does: a container from its root on, or some of its directories that
/// another job left.
struct ScanJob: Sendable {
  /// Counted from 0 as jobs are made.
  let number: Int
  /// Which of the wanted containers, from 0.
  let container: Int
  /// The directories, in the order of the walk; none for a whole container.
  var starts: [ScanStart] = []
  /// Whether access times are recorded: decided by the job that began the container, once.
  var notesAccess = false
}

/// A directory that a job left to another one.
struct ScanStart: Sendable {
  /// The names from the container's root down to it.
  let path: [ByteString]
  /// Where its entry is.
  let home: Home
  /// The directories above it, from the root on.
  let above: DirectoryChain
  let own: ChainLink

  /// A place in what a job found.
  struct Home: Sendable {
    let job: Int
    let segment: Int
    let index: Int
  }
}

/// Directories from a container's root down, each in the one before: what a job must know of what lies
/// above the directories that it begins at. Those of one directory share it.
final class DirectoryChain: Sendable {
  let links: [ChainLink]

  init(_ links: [ChainLink]) { self.links = links }
}

/// A directory's entry, without its place.
struct ChainLink: Sendable {
  let entry: ScannedEntry
  let name: ByteString
  let marks: MarkSet?
  let siblings: SiblingSet?
}

/// What a job found.
struct ScanPart: Sendable {
  let job: ScanJob
  /// The entries, with copies of the directories above them, so that paths and questions to the policy
  /// are whole.
  var scan: ContainerScan
  /// What belongs to each start, one after another; of a whole container all.
  var segments: [Segment] = []
  /// The directories that are left, in the order of the walk.
  var rest: [ScanStart] = []
  var isInterrupted = false

  /// The entries that were found below one start.
  struct Segment: Sendable {
    /// Where the start's entry is in the job that left it; nothing for a root.
    let home: ScanStart.Home?
    /// Where its copy is.
    let copy: Int
    var entries: Range<Int>
    var names: Range<Int>
  }
}
