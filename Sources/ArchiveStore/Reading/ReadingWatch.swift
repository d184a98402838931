internal import SystemIO

/// Follows a reading that takes long: counts what is done, and ends it where that is asked for.
public struct ReadingWatch: Sendable {
  /// What is done so far.
  public let counters: ProgressCounters
  private let place: String
  private let isStopping: @Sendable () -> Bool

  /// Begins to follow what is read of a repository, counted by `noun` ("file", "blob"). It asks
  /// `isStopping` often; when that holds, the reading throws `interruption`.
  public init(
    _ repository: Repository, of noun: String = "file",
    isStopping: @escaping @Sendable () -> Bool
  ) {
    counters = ProgressCounters(of: noun)
    place = repository.place
    self.isStopping = isStopping
  }

  /// How a reading ends that was asked to.
  public var interruption: StoreError {
    StoreError(
      .interrupted, "finish reading", place, "it was interrupted", hint: "run it again")
  }

  /// Throws `interruption` if the reading is to end.
  public func goOn() throws(StoreError) {
    if isStopping() { throw interruption }
  }

  /// Counts what a walk came to when `body` has done its work with it. The walk itself takes only
  /// directories in hand, which is seldom enough to cost nothing.
  func take(
    _ path: ByteString, _ node: Node, _ body: () throws -> WalkStep
  ) throws -> WalkStep {
    try goOn()
    if case .directory = node { counters.begin(path) }
    let step = try body()
    if case .file = node { counters.didHandle(files: 1) }
    return step
  }
}
