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
  ///
  /// They are the rest of a walk: each is in one of the directories above the first. So a path for
  /// each of them, which would cost the square of the depth, is not necessary.
  var starts: [Start] = []
  /// The directories from the container's root down to the one with the first start, or beyond.
  var above: [Link] = []
  /// Whether access times are recorded, as determined by the job that began the container.
  var notesAccess = false
}

extension ScanJob {
  /// A directory that a job left to another one.
  struct Start: Sendable {
    /// The location of its entry.
    let home: Home
    /// The number of directories above it: it is in `above[depth - 1]` of its job.
    let depth: Int
    let own: Link

    /// A location in the results of a job.
    struct Home: Sendable {
      let job: Int
      let segment: Int
      let index: Int
    }
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
    let number: Int
    let container: Int
    /// The entries, with copies of the directories above them, so that paths and policy queries are
    /// complete.
    var scan: ContainerScan
    /// The ranges that belong to each start, in order; one range for a whole container.
    var segments: [Segment] = []
    /// The directories that are left, in the order of the walk.
    var rest: [Start] = []
    /// The directories above those.
    var above: [Link] = []
    var isInterrupted = false

    init(of job: ScanJob, _ scan: ContainerScan) {
      (number, container, self.scan) = (job.number, job.container, scan)
    }

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
      var part = ScanJob.Part(of: job, scan)
      part.segments = [
        ScanJob.Part.Segment(
          home: nil, copy: 0, entries: 0..<scan.entries.count, names: 0..<scan.names.count)
      ]
      leave(rest, [], of: job, to: &part)
      return close(&part)
    }
    prepare(container, notesAccess: job.notesAccess)
    var part = ScanJob.Part(of: job, scan)
    do throws(SystemError) {
      let root = try Directory.open(resolved: container.absolutePath)
      remind(container, root)
      walk(root, of: job, &part)
    } catch {
      miss(job, because: error, &part)
    }
    return close(&part)
  }

  /// Records that the directories of a job could not be reached: their entries are unknown, not
  /// absent.
  private mutating func miss(
    _ job: ScanJob, because error: SystemError, _ part: inout ScanJob.Part
  ) {
    copyDirectories(above: job.starts[0], of: job)
    for start in job.starts {
      let copy = copy(start.own, in: start.depth - 1)
      let state = state(of: start, copy)
      if error.isMissing {
        lost(state: state)
      } else {
        failed(at: scan.path(copy), error, state: state)
      }
      let (entries, names) = (scan.entries.count, scan.names.count)
      part.segments.append(
        ScanJob.Part.Segment(
          home: start.home, copy: copy, entries: entries..<entries, names: names..<names))
    }
  }

  private mutating func walk(
    _ root: consuming Directory, of job: ScanJob, _ part: inout ScanJob.Part
  ) {
    var walk = Walk(root, only: scan.container.memberNames, readsFlags: options.isForPurge)
    copyDirectories(above: job.starts[0], of: job)
    for (number, start) in job.starts.enumerated() {
      let copy = copy(start.own, in: start.depth - 1)
      let (first, name) = (scan.entries.count, scan.names.count)
      let rest = walk.run(
        &self,
        from: WalkStart(
          name: start.own.name, depth: start.depth, state: state(of: start, copy),
          identity: start.own.entry.status.identity)
      ) { job.above[1..<start.depth].map(\.name) }
      part.segments.append(
        ScanJob.Part.Segment(
          home: start.home, copy: copy, entries: first..<scan.entries.count,
          names: name..<scan.names.count))
      if isDone || isYielding {
        return leave(rest, job.starts[(number + 1)...], of: job, to: &part)
      }
    }
  }

  private mutating func close(_ part: inout ScanJob.Part) -> ScanJob.Part {
    part.scan = scan
    part.isInterrupted = isDone
    scan = ContainerScan(scan.container)
    return part
  }

  /// Leaves the directories of the last segment that were not reached, and the starts after it.
  private func leave(
    _ rest: [WalkStart<State>], _ others: ArraySlice<ScanJob.Start>, of job: ScanJob,
    to part: inout ScanJob.Part
  ) {
    part.above = job.above
    if let first = rest.first {
      let parent = Int(scan.entries[first.state.directory].parent)
      part.above = [link(0)] + scan.directories(to: parent).map { link(Int($0)) }
    }
    part.rest = rest.map { left in
      ScanJob.Start(
        home: ScanJob.Start.Home(
          job: job.number, segment: part.segments.count - 1, index: left.state.directory),
        depth: left.depth, own: link(left.state.directory))
    }
    part.rest += others
  }

  private func link(_ index: Int) -> ScanJob.Link {
    ScanJob.Link(
      entry: scan.entries[index], name: scan.name(index), marks: scan.marks[index],
      siblings: scan.siblings[index])
  }
}

// MARK: - Directories above the starts

extension ContainerScanner {
  /// The directories above the starts of a job, the root first. The copy of each is the entry with
  /// its number.
  struct Above {
    var links: ArraySlice<ScanJob.Link> = []
    /// The classifier's states of the directories, valid until the classifier forgets them.
    fileprivate var policies: [Classifier.State] = []
    fileprivate var generation = -1
  }

  private mutating func copyDirectories(above start: ScanJob.Start, of job: ScanJob) {
    above = Above(links: job.above.prefix(start.depth))
    for (number, link) in above.links.enumerated() { _ = copy(link, in: max(number - 1, 0)) }
  }

  private mutating func copy(_ link: ScanJob.Link, in parent: Int) -> Int {
    var entry = link.entry
    entry.parent = Int32(parent)
    entry.nameStart = UInt32(scan.names.count)
    (entry.firstChild, entry.childCount) = (0, 0)
    let index = scan.append(entry, accessed: 0)
    scan.names.append(contentsOf: link.name.bytes)
    if let marks = link.marks { scan.marks[index] = marks }
    if let siblings = link.siblings { scan.siblings[index] = siblings }
    return index
  }

  /// Returns the state of a start's directory: one step from that of the directory above it.
  private mutating func state(of start: ScanJob.Start, _ copy: Int) -> State {
    if above.generation != generation { classifyAbove() }
    let policy = classify(start.own, in: above.policies[start.depth - 1])
    return State(directory: copy, policy: policy, generation: generation)
  }

  private mutating func classifyAbove() {
    let container = scan.container
    var policy = classifier.root(
      container.kind, app: container.policyApp, group: container.policyGroup)
    above.policies = []
    for (number, link) in above.links.enumerated() {
      policy = number == 0 ? mark(policy, link) : classify(link, in: policy)
      above.policies.append(policy)
    }
    above.generation = generation
  }

  private mutating func classify(
    _ link: ScanJob.Link, in above: Classifier.State
  ) -> Classifier.State {
    mark(link.name.withSpan { classifier.descend(above, $0) }, link)
  }

  private mutating func mark(_ policy: Classifier.State, _ link: ScanJob.Link) -> Classifier.State {
    let marked = link.marks.map { classifier.marking(policy, $0) } ?? policy
    return link.siblings.map { classifier.holding(marked, $0) } ?? marked
  }
}
