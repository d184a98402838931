internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// Threads that help the importing thread: they store contents that are detached from the source,
/// and compress data that the others have collected.
final class ImportHelpers: Sendable {
  /// Stores one content with the writer of the thread that runs it.
  struct Job: Sendable {
    let run: @Sendable (ContentWriter) -> Void
  }

  /// The result of a job, which arrives once.
  typealias Pending = BoundedQueue<Result<Content, any Error>>

  private let isDone = Atomic<Bool>(false)
  /// As many jobs as threads, so that the importing thread stores some itself.
  private let jobs: BoundedQueue<Job>
  private let workers: Workers?

  /// Starts threads.
  ///
  /// - Parameter count: their number; none if it is 0.
  init(_ session: WritingSession, count: Int) throws {
    let writers = try (0..<max(0, count)).map { _ in Sent(try session.makeWriter()) }
    jobs = BoundedQueue(capacity: count)
    workers = writers.isEmpty ? nil : try Workers(count: count, capacity: count, name: "import")
    for writer in writers { workers?.submit { [self] in work(writer.value) } }
  }

  /// A value that is created on one thread and used on another only.
  private struct Sent: @unchecked Sendable {
    let value: ContentWriter

    init(_ value: ContentWriter) { self.value = value }
  }

  private func work(_ writer: ContentWriter) {
    while !isFinished {
      var job: Job?
      writer.helpUntilDone {
        if job == nil { job = jobs.dequeue(waitingAtMost: 0) }
        return job != nil || isFinished
      }
      job?.run(writer)
    }
    // A failure has ended the session, which its next step reports.
    try? writer.flush()
  }

  /// Whether the import has ended, even by an error: a job then ends early.
  var isFinished: Bool { isDone.load(ordering: .acquiring) }

  /// Whether there are threads that run jobs.
  var isEmpty: Bool { workers == nil }

  /// Lets a thread run a job, or runs it here if all are occupied.
  func run(_ job: Job, orHereBy writer: ContentWriter) {
    if !jobs.offer(job) { job.run(writer) }
  }

  /// Waits for the result of a job, and meanwhile runs others and compresses for them.
  func result(of pending: Pending, helpedBy writer: ContentWriter) -> Result<Content, any Error> {
    while let job = jobs.dequeue(waitingAtMost: 0) { job.run(writer) }
    while true {
      var result = pending.dequeue(waitingAtMost: 0)
      if let result { return result }
      writer.helpUntilDone {
        if result == nil { result = pending.dequeue(waitingAtMost: 0) }
        return result != nil
      }
      if let result { return result }
    }
  }

  /// Waits until all threads have ended.
  func finish() {
    isDone.store(true, ordering: .releasing)
    workers?.finish()
  }
}
