internal import Synchronization

/// The work for requests. All threads but one may work at the same time: the last one receives.
/// Otherwise, an interruption of a request by the kernel would go unnoticed while all threads wait
/// for the repository.
final class RequestQueue: Sendable {
  typealias Job = @Sendable () -> Void

  private struct State {
    /// The number of threads that receive or wait for their turn to receive.
    var free = 0
    /// The jobs that wait for a thread.
    var jobs: [Job] = []
  }

  private let state = Mutex(State())

  /// The number of jobs that wait for a thread.
  var waiting: Int { state.withLock { $0.jobs.count } }

  /// Adds a thread that receives.
  func join() { state.withLock { $0.free += 1 } }

  /// Removes a thread that receives.
  func leave() { state.withLock { $0.free -= 1 } }

  /// Runs a job or, if no other thread receives, keeps it for a thread that has finished its own
  /// job.
  func run(_ job: @escaping Job) {
    let isNow = state.withLock { state in
      if state.free > 1 {
        state.free -= 1
        return true
      }
      state.jobs.append(job)
      return false
    }
    guard isNow else { return }
    job()
    join()
  }

  /// Runs a waiting job, unless no other thread receives. Returns false if none was run.
  ///
  /// - Parameter before: called before the job.
  func runNext(before: () -> Void) -> Bool {
    let job = state.withLock { state -> Job? in
      guard state.free > 1, !state.jobs.isEmpty else { return nil }
      state.free -= 1
      return state.jobs.removeFirst()
    }
    guard let job else { return false }
    before()
    job()
    join()
    return true
  }
}
