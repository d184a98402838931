internal import Synchronization
internal import SystemIO

/// Monitors a long read: counts its progress and interrupts it on request.
public struct ReadingWatch: Sendable {
  /// The progress so far.
  public let counters: ProgressCounters
  private let location: String
  private let isStopping: @Sendable () -> Bool
  private let held = HeldLease()

  /// Monitors a read of a repository, counted in units of `noun` ("file", "blob"). `isStopping` is
  /// called often; if it returns true, the read throws `interruption`.
  public init(
    _ repository: Repository, of noun: String = "file",
    isStopping: @escaping @Sendable () -> Bool
  ) {
    counters = ProgressCounters(of: noun)
    location = repository.location
    self.isStopping = isStopping
  }

  /// The error of an interrupted read.
  public var interruption: StoreError {
    .interrupted("finish reading", location, hint: "run it again")
  }

  /// Throws `interruption` if the read should stop.
  public func checkCancellation() throws(StoreError) {
    if isStopping() { throw interruption }
  }

  /// Records the lease under which the read works.
  func hold(_ lease: ReaderLease) { held.lease.withLock { $0 = WeakLease(lease: lease) } }

  /// Releases the lease of a read that does not end by itself, before the program ends without it.
  public func abandon() { held.lease.withLock { $0.lease }?.release() }

  private final class HeldLease: Sendable {
    let lease = Mutex(WeakLease())
  }

  /// A lease that lives as long as its reader.
  private struct WeakLease: Sendable {
    weak let lease: ReaderLease?

    init(lease: ReaderLease? = nil) { self.lease = lease }
  }

  /// Counts an entry of a walk after `body` has processed it. Only directories are reported as the
  /// current path, which is rare enough to cost nothing.
  func visit(
    _ path: ByteString, node: Node, body: () throws -> TreeWalk.Step
  ) throws -> TreeWalk.Step {
    try checkCancellation()
    if case .directory = node { counters.begin(path) }
    let step = try body()
    if case .file = node { counters.didHandle(files: 1) }
    return step
  }
}
