package import PolicyEngine
package import SandboxModel
package import SystemIO

/// A scan with several threads.
///
/// A job is a container, or some of its directories. It scans its share of entries and leaves the
/// directories that it did not reach to two further jobs, so that any tree except a single long
/// path is distributed evenly.
package struct ParallelScan {
  private let containers: [Container]
  private let policy: CompiledPolicy
  private let options: ScanOptions
  private let start: Timestamp

  package init(
    _ containers: [Container], policy: CompiledPolicy, options: ScanOptions,
    at start: Timestamp
  ) {
    (self.containers, self.policy, self.options) = (containers, policy, options)
    self.start = start
  }

  /// The combined results of all threads.
  package struct Result {
    package var containers: [ContainerScan] = []
    package var isInterrupted = false
    var marks: ExclusionMarkCache?
  }

  /// Runs the scan.
  ///
  /// - Throws: an error if a thread cannot be started.
  package func run(knowing marks: ExclusionMarkCache?) throws(SystemError) -> Result {
    let jobs = BoundedQueue<ScanJob>(capacity: .max)
    let found = BoundedQueue<ScanPart>(capacity: .max)
    let memories = BoundedQueue<ExclusionMarkCache?>(capacity: .max)
    let threads = try Workers(count: options.workers, capacity: options.workers, name: "scan")
    for _ in 0..<options.workers {
      threads.submit { memories.put(work(on: jobs, into: found, knowing: marks)) }
    }
    var result = gather(jobs, found)
    jobs.close()
    threads.finish()
    memories.close()
    result.marks = marks
    while let memory = memories.take() {
      if let memory { result.marks?.add(memory) }
    }
    return result
  }

  /// Runs jobs until there are no more; returns the marks found.
  private func work(
    on jobs: BoundedQueue<ScanJob>, into found: BoundedQueue<ScanPart>,
    knowing marks: ExclusionMarkCache?
  ) -> ExclusionMarkCache? {
    guard let first = containers.first else { return nil }
    var scanner = ContainerScanner(policy, at: start, first: first, options: options)
    scanner.memory = marks
    scanner.share = options.share
    while let job = jobs.take() { found.put(scanner.run(job, of: containers[job.container])) }
    return scanner.memory
  }

  /// Hands out jobs until none are left, and assembles their results.
  private func gather(
    _ jobs: BoundedQueue<ScanJob>, _ found: BoundedQueue<ScanPart>
  ) -> Result {
    var (result, assembly) = (Result(), ScanAssembly())
    var next = containers.count
    for number in containers.indices { jobs.put(ScanJob(number: number, container: number)) }
    var active = next
    while active > 0, let part = found.take() {
      active -= 1
      result.isInterrupted = result.isInterrupted || part.isInterrupted
      let further = result.isInterrupted ? [] : Self.split(part, from: &next)
      assembly.add(part, leaving: further)
      for job in further { jobs.put(job) }
      active += further.count
    }
    result.containers = containers.indices.compactMap { assembly.take($0) }
    return result
  }

  /// Returns two jobs for the directories that a job left, or one if it left one directory.
  private static func split(_ part: ScanPart, from next: inout Int) -> [ScanJob] {
    let rest = part.rest
    let middle = (rest.count + 1) / 2
    return [rest[..<middle], rest[middle...]].filter { !$0.isEmpty }.map { starts in
      defer { next += 1 }
      return ScanJob(
        number: next, container: part.job.container, starts: Array(starts),
        notesAccess: part.scan.accessTimes.isRecorded)
    }
  }
}
