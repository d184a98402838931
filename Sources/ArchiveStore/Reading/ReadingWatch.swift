internal import SystemIO

/// Monitors a long read: counts its progress and interrupts it on request.
public struct ReadingWatch: Sendable {
  /// The progress so far.
  public let counters: ProgressCounters
  private let place: String
  private let isStopping: @Sendable () -> Bool

  /// Monitors a read of a repository, counted in units of `noun` ("file", "blob"). `isStopping` is
  /// called often; if it returns true, the read throws `interruption`.
  public init(
    _ repository: Repository, of noun: String = "file",
    isStopping: @escaping @Sendable () -> Bool
  ) {
    counters = ProgressCounters(of: noun)
    place = repository.place
    self.isStopping = isStopping
  }

  /// The error of an interrupted read.
  public var interruption: StoreError {
    StoreError(
      .interrupted, "finish reading", subject: place, reason: "it was interrupted",
      hint: "run it again")
  }

  /// Throws `interruption` if the read should stop.
  public func checkCancellation() throws(StoreError) {
    if isStopping() { throw interruption }
  }

  /// Counts an entry of a walk after `body` has processed it. Only directories are reported as the
  /// current path, which is rare enough to cost nothing.
  func take(
    _ path: ByteString, node: Node, body: () throws -> TreeWalk.Step
  ) throws -> TreeWalk.Step {
    try checkCancellation()
    if case .directory = node { counters.begin(path) }
    let step = try body()
    if case .file = node { counters.didHandle(files: 1) }
    return step
  }
}
