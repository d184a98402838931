internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A part of a scan that one thread does: a container from its root, or some of its directories
/// that another job left.
struct ScanJob: Sendable {
  /// The number of the job, from 0 in the order in which jobs are made.
  let number: Int
  /// The index of the container among the wanted ones.
  let container: Int
  /// The directories in the order of the walk; empty for a whole container.
  var starts: [ScanStart] = []
  /// Whether access times are recorded, as determined by the job that began the container.
  var notesAccess = false
}

/// A directory that a job left to another one.
struct ScanStart: Sendable {
  /// The names from the container's root down to the directory.
  let path: [ByteString]
  /// The location of its entry.
  let home: Home
  /// Its ancestors, from the root down.
  let above: DirectoryChain
  let own: ChainLink

  /// A location in the results of a job.
  struct Home: Sendable {
    let job: Int
    let segment: Int
    let index: Int
  }
}

/// Directories from a container's root down, each in the one before: the ancestors that a job needs
/// of the directories at which it begins. Directories with the same parent share a chain.
final class DirectoryChain: Sendable {
  let links: [ChainLink]

  init(_ links: [ChainLink]) { self.links = links }
}

/// A directory's entry, without its location.
struct ChainLink: Sendable {
  let entry: ScannedEntry
  let name: ByteString
  let marks: MarkSet?
  let siblings: SiblingSet?
}

/// The results of a job.
struct ScanPart: Sendable {
  let job: ScanJob
  /// The entries, with copies of the directories above them, so that paths and policy queries are
  /// complete.
  var scan: ContainerScan
  /// The ranges that belong to each start, in order; one range for a whole container.
  var segments: [Segment] = []
  /// The directories that are left, in the order of the walk.
  var rest: [ScanStart] = []
  var isInterrupted = false

  /// The entries that were found below one start.
  struct Segment: Sendable {
    /// The location of the start's entry in the job that left it, or nil for a root.
    let home: ScanStart.Home?
    /// The index of the start's copy.
    let copy: Int
    var entries: Range<Int>
    var names: Range<Int>
  }
}
