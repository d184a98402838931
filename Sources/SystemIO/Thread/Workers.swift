internal import Glibc

/// A fixed number of threads that run jobs from a bounded queue.
///
/// Blocking calls belong here and never on Swift's cooperative pool, which is as wide as the number
/// of cores and does not grow. Jobs start in the order of submission and end in any order. Jobs
/// handle their own errors. A job must not call `finish()`.
public final class Workers: Sendable {
  private let queue: BoundedQueue<Job>
  private let alive: ConditionLock<Int>

  private struct Job: Sendable {
    let run: @Sendable () -> Void
  }

  /// Starts `count` threads (at least 1) and a queue of at most `capacity` jobs. Threads inherit
  /// the fault plan of the thread that starts them.
  public init(count: Int, capacity: Int, name: String) throws(SystemError) {
    queue = BoundedQueue(capacity: capacity)
    alive = ConditionLock(0)
    for _ in 0..<max(1, count) {
      do throws(SystemError) {
        try start(name)
      } catch {
        finish()
        throw error
      }
    }
  }

  /// Submits a job, waiting while the queue is full. Returns false after `finish()`.
  @discardableResult
  public func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
    queue.enqueue(Job(run: job))
  }

  /// Refuses further jobs and waits until the queue is empty and all threads have exited.
  public func finish() {
    queue.close()
    unsafe alive.withLock { alive, wait in while unsafe alive.pointee > 0 { wait() } }
  }

  /// Submitted jobs are still run, but not waited for.
  deinit { queue.close() }

  private func start(_ name: String) throws(SystemError) {
    let (queue, alive, plan) = (queue, alive, Faults.current)
    unsafe alive.withLock { alive, _ in unsafe alive.pointee += 1 }
    do throws(SystemError) {
      try Self.detach(name) {
        Faults.current = plan
        while let job = queue.dequeue() { job.run() }
        Faults.current = nil
        withExtendedLifetime(plan) {}
        unsafe alive.withLock { alive, _ in unsafe alive.pointee -= 1 }
      }
    } catch {
      unsafe alive.withLock { alive, _ in unsafe alive.pointee -= 1 }
      throw error
    }
  }

  /// Starts a detached thread that runs `body`, with a stack of 1 MiB instead of the default of 8.
  private static func detach(
    _ name: String, _ body: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    let box = unsafe Unmanaged.passRetained(Body(body))
    var attributes = pthread_attr_t()
    unsafe pthread_attr_init(&attributes)
    defer { unsafe pthread_attr_destroy(&attributes) }
    unsafe pthread_attr_setstacksize(&attributes, 1 << 20)
    unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    do throws(SystemError) {
      _ = try SystemError.check(.startThread, ByteString(name)) {
        var thread = pthread_t()
        return -Int(
          unsafe pthread_create(
            &thread, &attributes,
            { raw in
              guard let raw = unsafe raw else { return nil }
              unsafe Unmanaged<Body>.fromOpaque(raw).takeRetainedValue().run()
              return nil
            }, box.toOpaque()))
      }
    } catch {
      unsafe box.release()
      throw error
    }
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
