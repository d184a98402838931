internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A scan with several threads.
///
/// A job is a container, or some of its directories. It scans its share of entries and leaves the
/// directories that it did not reach to two further jobs, so that any tree except a single long
/// path is distributed evenly.
struct ParallelScan {
  private let containers: [Container]
  private let policy: CompiledPolicy
  private let options: ScanOptions
  private let start: Timestamp

  init(
    _ containers: [Container], policy: CompiledPolicy, options: ScanOptions,
    at start: Timestamp
  ) {
    (self.containers, self.policy, self.options) = (containers, policy, options)
    self.start = start
  }

  /// The combined results of all threads.
  struct Result {
    var containers: [ContainerScan] = []
    var isInterrupted = false
    var marks: ExclusionMarkCache?
  }

  /// Runs the scan.
  ///
  /// - Throws: an error if a thread cannot be started.
  func run(knowing marks: ExclusionMarkCache?) throws(SystemError) -> Result {
    let jobs = BoundedQueue<ScanJob>(capacity: .max)
    let found = BoundedQueue<ScanJob.Part>(capacity: .max)
    let caches = BoundedQueue<ExclusionMarkCache?>(capacity: .max)
    let threads = try Workers(count: options.workers, capacity: options.workers, name: "scan")
    for _ in 0..<options.workers {
      threads.submit { caches.enqueue(work(on: jobs, into: found, knowing: marks)) }
    }
    var result = gather(jobs, found)
    jobs.close()
    threads.finish()
    caches.close()
    result.marks = marks
    while let cache = caches.dequeue() {
      if let cache { result.marks?.add(cache) }
    }
    return result
  }

  /// Runs jobs until there are no more; returns the marks found.
  private func work(
    on jobs: BoundedQueue<ScanJob>, into found: BoundedQueue<ScanJob.Part>,
    knowing marks: ExclusionMarkCache?
  ) -> ExclusionMarkCache? {
    guard let first = containers.first else { return nil }
    var scanner = ContainerScanner(policy, at: start, first: first, options: options)
    scanner.markCache = marks
    scanner.share = options.share
    while let job = jobs.dequeue() {
      found.enqueue(scanner.run(job, of: containers[job.container]))
    }
    return scanner.markCache
  }

  /// Hands out jobs until none are left, and assembles their results.
  private func gather(
    _ jobs: BoundedQueue<ScanJob>, _ found: BoundedQueue<ScanJob.Part>
  ) -> Result {
    var (result, assembly) = (Result(), Assembly())
    var next = containers.count
    for number in containers.indices { jobs.enqueue(ScanJob(number: number, container: number)) }
    var active = next
    while active > 0, let part = found.dequeue() {
      active -= 1
      result.isInterrupted = result.isInterrupted || part.isInterrupted
      let further = result.isInterrupted ? [] : Self.split(part, from: &next)
      assembly.add(part, leaving: further)
      for job in further { jobs.enqueue(job) }
      active += further.count
    }
    result.containers = containers.indices.compactMap { assembly.removeScan($0, options) }
    return result
  }

  /// Returns two jobs for the directories that a job left, or one if it left one directory.
  static func split(_ part: ScanJob.Part, from next: inout Int) -> [ScanJob] {
    let rest = part.rest
    let middle = (rest.count + 1) / 2
    return [rest[..<middle], rest[middle...]].filter { !$0.isEmpty }.map { starts in
      defer { next += 1 }
      return ScanJob(
        number: next, container: part.container, starts: Array(starts), above: part.above,
        notesAccess: part.scan.accessTimes.isRecorded)
    }
  }
}

// MARK: - Assembly

extension ParallelScan {
  /// Assembles the parts of containers' scans. The order depends only on the tree and the share of
  /// a job, never on the speed of the threads.
  private struct Assembly {
    private var parts: [Int: ScanJob.Part] = [:]
    /// The jobs that each job left, in the order of the walk.
    private var children: [Int: [Int]] = [:]
    /// The distances by which the entries of each segment of a job moved.
    private var moves: [Int: [Int]] = [:]

    /// The number of bytes of the parts' entries.
    private var held = 0
    /// The number of bytes that parts hold on the heap. Later parts can spill.
    private static let maximumRetained = 32 << 20

    mutating func add(_ part: ScanJob.Part, leaving jobs: [ScanJob]) {
      var part = part
      // The jobs have them now, and release them when they end.
      (part.rest, part.above) = ([], [])
      held += part.scan.entries.byteCount
      if held > Self.maximumRetained { part.scan.makeSpillable() }
      parts[part.number] = part
      children[part.number] = jobs.map(\.number)
    }

    /// Returns the whole scan of the container that a job began.
    mutating func removeScan(_ first: Int, _ options: ScanOptions) -> ContainerScan? {
      guard var scan = parts.removeValue(forKey: first)?.scan else { return nil }
      reserve(&scan, from: first)
      moves[first] = [0]
      var pending = Array((children[first] ?? []).reversed())
      while let job = pending.popLast() {
        guard let part = parts.removeValue(forKey: job) else { continue }
        graft(part, onto: &scan)
        pending += (children[job] ?? []).reversed()
      }
      scan.joinDatabases(options)
      scan.findBareDirectories()
      return scan
    }

    /// Reserves space for all parts at once, so that no table is moved while it grows.
    private func reserve(_ scan: inout ContainerScan, from first: Int) {
      var (entries, names) = (0, 0)
      var pending = children[first] ?? []
      while let job = pending.popLast() {
        for segment in parts[job]?.segments ?? [] {
          entries += segment.entries.count
          names += segment.names.count
        }
        pending += children[job] ?? []
      }
      if entries > 0 { scan.reserve(entries, names: names) }
    }

    private mutating func graft(_ part: ScanJob.Part, onto scan: inout ContainerScan) {
      var moved: [Int] = []
      for segment in part.segments {
        guard let home = segment.home, let offset = moves[home.job]?[home.segment] else { continue }
        let graft = Graft(segment, at: home.index + offset, on: scan)
        graft.apply(part.scan, to: &scan)
        moved.append(graft.entries)
      }
      moves[part.number] = moved
      scan.unreadable += part.scan.unreadable
      scan.vanished += part.scan.vanished
      scan.mounts += part.scan.mounts
      scan.repositories += part.scan.repositories
      scan.crossedMounts += part.scan.crossedMounts
    }
  }

  /// Moves the entries found below one directory into the container's scan.
  private struct Graft {
    let segment: ScanJob.Part.Segment
    /// The directory's index in the container's scan.
    let home: Int
    /// The distances by which the indexes of entries and of names increase.
    let entries: Int
    let names: Int

    init(_ segment: ScanJob.Part.Segment, at home: Int, on scan: ContainerScan) {
      (self.segment, self.home) = (segment, home)
      entries = scan.entries.count - segment.entries.lowerBound
      names = scan.names.count - segment.names.lowerBound
    }

    func apply(_ part: ContainerScan, to scan: inout ContainerScan) {
      scan.names.append(contentsOf: part.names[segment.names])
      for index in segment.entries {
        scan.append(moved(part.entries[index]), accessed: part.accessTimes[index] ?? 0)
      }
      let copy = part.entries[segment.copy]
      if copy.childCount > 0 {
        scan.entries[home].firstChild = copy.firstChild + Int32(entries)
        scan.entries[home].childCount = copy.childCount
      }
      scan.entries[home].selection = copy.selection
      scan.entries[home].isUnreadable = scan.entries[home].isUnreadable || copy.isUnreadable
      scan.entries[home].isStale = scan.entries[home].isStale || copy.isStale
      // A part can have thousands of segments: look up each entry rather than search all marks for
      // each segment.
      for index in segment.entries {
        if !part.marks.isEmpty, let marks = part.marks[index] {
          scan.marks[index + entries] = marks
        }
        if !part.siblings.isEmpty, let siblings = part.siblings[index] {
          scan.siblings[index + entries] = siblings
        }
        if !part.ownDirectories.isEmpty, part.ownDirectories.contains(index) {
          scan.ownDirectories.insert(index + entries)
        }
      }
      if part.ownDirectories.contains(segment.copy) { scan.ownDirectories.insert(home) }
    }

    private func moved(_ entry: ScannedEntry) -> ScannedEntry {
      var entry = entry
      entry.parent = Int(entry.parent) == segment.copy ? Int32(home) : entry.parent + Int32(entries)
      entry.nameStart = UInt32(Int(entry.nameStart) + names)
      if entry.childCount > 0 { entry.firstChild += Int32(entries) }
      return entry
    }
  }
}
