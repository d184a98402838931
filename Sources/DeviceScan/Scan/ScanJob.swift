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
  var starts: [Start] = []
  /// Whether access times are recorded, as determined by the job that began the container.
  var notesAccess = false
}

extension ScanJob {
  /// A directory that a job left to another one.
  struct Start: Sendable {
    /// The names from the container's root down to the directory.
    let path: [ByteString]
    /// The location of its entry.
    let home: Home
    /// Its ancestors, from the root down.
    let above: Ancestors
    let own: Link

    /// A location in the results of a job.
    struct Home: Sendable {
      let job: Int
      let segment: Int
      let index: Int
    }
  }

  /// Directories from a container's root down, each in the one before: the ancestors that a job
  /// needs of the directories at which it begins. Directories with the same parent share a chain.
  final class Ancestors: Sendable {
    let links: [Link]

    init(_ links: [Link]) { self.links = links }
  }

  /// A directory's entry, without its location.
  struct Link: Sendable {
    let entry: ScannedEntry
    let name: ByteString
    let marks: MarkSet?
    let siblings: SiblingSet?
  }

  /// The results of a job.
  struct Part: Sendable {
    let job: ScanJob
    /// The entries, with copies of the directories above them, so that paths and policy queries are
    /// complete.
    var scan: ContainerScan
    /// The ranges that belong to each start, in order; one range for a whole container.
    var segments: [Segment] = []
    /// The directories that are left, in the order of the walk.
    var rest: [Start] = []
    var isInterrupted = false

    /// The entries that were found below one start.
    struct Segment: Sendable {
      /// The location of the start's entry in the job that left it, or nil for a root.
      let home: Start.Home?
      /// The index of the start's copy.
      let copy: Int
      var entries: Range<Int>
      var names: Range<Int>
    }
  }
}

// MARK: - Running a job

/// A scan in parts: each ends when it has its share of entries, and leaves the directories that it
/// did not reach to others.
extension ContainerScanner {
  /// Runs a job.
  mutating func run(_ job: ScanJob, of container: Container) -> ScanJob.Part {
    if job.starts.isEmpty {
      let rest = begin(container)
      var part = ScanJob.Part(job: job, scan: scan)
      part.segments = [
        ScanJob.Part.Segment(
          home: nil, copy: 0, entries: 0..<scan.entries.count, names: 0..<scan.names.count)
      ]
      return close(&part, rest, leaving: [])
    }
    prepare(container, notesAccess: job.notesAccess)
    var part = ScanJob.Part(job: job, scan: scan)
    do throws(SystemError) {
      let root = try Directory.open(resolved: container.absolutePath)
      remind(container, root)
      return walk(root, &part)
    } catch {
      scan.unreadable.append(PathRemark(path: "", remark: error.reason))
      return close(&part, [], leaving: [])
    }
  }

  private mutating func walk(
    _ root: consuming Directory, _ part: inout ScanJob.Part
  ) -> ScanJob.Part {
    var walk = Walk(root, only: part.scan.container.memberNames)
    var above: ScanJob.Ancestors?
    for (number, start) in part.job.starts.enumerated() {
      let copy = copyChain(of: start, isNew: above !== start.above)
      above = start.above
      let (first, name) = (scan.entries.count, scan.names.count)
      let rest = walk.run(
        &self,
        from: WalkStart(
          path: start.path, state: state(of: copy),
          identity: start.own.entry.status.identity))
      part.segments.append(
        ScanJob.Part.Segment(
          home: start.home, copy: copy, entries: first..<scan.entries.count,
          names: name..<scan.names.count))
      if isDone || isYielding {
        return close(&part, rest, leaving: Array(part.job.starts[(number + 1)...]))
      }
    }
    return close(&part, [], leaving: [])
  }

  /// Returns the state of a directory for which the classifier must determine its own state.
  private mutating func state(of directory: Int) -> State {
    let root = classifier.root(
      scan.container.kind, app: scan.container.policyApp, group: scan.container.policyGroup)
    return State(directory: directory, policy: root, generation: -1)
  }

  private mutating func close(
    _ part: inout ScanJob.Part, _ rest: [WalkStart<State>], leaving others: [ScanJob.Start]
  ) -> ScanJob.Part {
    part.rest = starts(rest, of: part) + others
    part.scan = scan
    part.isInterrupted = isDone
    scan = ContainerScan(scan.container)
    return part
  }

  /// Returns the starts of another job, for the directories that the last segment left.
  private func starts(_ rest: [WalkStart<State>], of part: ScanJob.Part) -> [ScanJob.Start] {
    var chains: [Int: ScanJob.Ancestors] = [:]
    return rest.map { left in
      let directory = left.state.directory
      let parent = Int(scan.entries[directory].parent)
      let above = chains[parent] ?? chain(downTo: parent)
      chains[parent] = above
      return ScanJob.Start(
        path: left.path,
        home: ScanJob.Start.Home(
          job: part.job.number, segment: part.segments.count - 1, index: directory),
        above: above, own: link(directory))
    }
  }

  private func chain(downTo directory: Int) -> ScanJob.Ancestors {
    var chain = [directory]
    while let last = chain.last, last > 0 { chain.append(Int(scan.entries[last].parent)) }
    return ScanJob.Ancestors(chain.reversed().map { link($0) })
  }

  private func link(_ index: Int) -> ScanJob.Link {
    ScanJob.Link(
      entry: scan.entries[index], name: scan.name(index), marks: scan.marks[index],
      siblings: scan.siblings[index])
  }

  /// Appends copies of a start's directory and of its ancestors, unless these are the same as for
  /// the last start; returns the index of the directory's copy. The root's copy is always the
  /// first.
  private mutating func copyChain(of start: ScanJob.Start, isNew: Bool) -> Int {
    if isNew {
      var parent = 0
      for (depth, link) in start.above.links.enumerated() where depth > 0 || scan.entries.isEmpty {
        parent = copy(link, in: parent)
      }
      chainEnd = parent
    }
    return copy(start.own, in: chainEnd)
  }

  private mutating func copy(_ link: ScanJob.Link, in parent: Int) -> Int {
    var entry = link.entry
    entry.parent = Int32(parent)
    entry.nameStart = UInt32(scan.names.count)
    (entry.firstChild, entry.childCount) = (0, 0)
    let index = scan.append(entry, accessed: 0)
    copies += 1
    scan.names.append(contentsOf: link.name.bytes)
    if let marks = link.marks { scan.marks[index] = marks }
    if let siblings = link.siblings { scan.siblings[index] = siblings }
    return index
  }
}
