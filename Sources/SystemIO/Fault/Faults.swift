internal import CLinux
internal import Glibc
internal import Synchronization

/// Fault points for tests and for interruptions in scenarios: any system call can be made to fail.
///
/// A plan applies to the thread that set it and to the worker threads that it starts, so tests can
/// run in parallel. Without a plan a fault point costs one thread-local load.
public enum Faults {
  /// The calls that fail, and the error.
  public final class Plan: Sendable {
    let operations: Set<SystemError.Operation>?
    let first: Int
    let failsRepeatedly: Bool
    let number: Int32
    /// The number of bytes that one positioned read returns, and the pause after each in seconds.
    let slowness: (bytes: Int, pause: Double)?
    /// The magic number of the simulated file system (statfs(2)).
    let fileSystem: UInt?
    /// Called before call number `first`, which then does not fail.
    private let action: (@Sendable () -> Void)?
    /// The operations that fail after call number `first`, in addition to those that are counted.
    private let ended: Set<SystemError.Operation>
    /// Whether calls that make data durable succeed without doing so.
    let skipsSyncs: Bool
    private let calls = Atomic<Int>(0)

    /// Creates a plan: call number `first` (from 1) of the given operations (nil: all) fails with
    /// the error `number`. If `failsRepeatedly`, all later calls fail as well.
    public init(
      failing operations: Set<SystemError.Operation>? = nil, at first: Int, number: Int32,
      failsRepeatedly: Bool = false
    ) {
      self.operations = operations
      self.first = first
      self.number = number
      self.failsRepeatedly = failsRepeatedly
      (slowness, fileSystem, action, ended) = (nil, nil, nil, [])
      skipsSyncs = false
    }

    /// Creates a plan under which every change fails from call number `first` (from 1) of the given
    /// operations on, as if the process had been killed there: the contents of the volume stay
    /// unchanged. Reads succeed, and nothing is made durable.
    public init(endingAt first: Int, of operations: Set<SystemError.Operation>) {
      self.operations = operations
      self.first = first
      (failsRepeatedly, number) = (true, EIO)
      (slowness, fileSystem, action, ended) = (nil, nil, nil, Faults.changes)
      skipsSyncs = true
    }

    /// Creates a plan under which no call fails and nothing is made durable: for data that is
    /// removed at the end of the run.
    public init(skippingSyncs: Bool) {
      (operations, first, failsRepeatedly, number) = ([], Int.max, false, 0)
      (slowness, fileSystem, action, ended) = (nil, nil, nil, [])
      skipsSyncs = skippingSyncs
    }

    /// Creates a plan under which no call fails: `action` is called before call number `first`
    /// (from 1) of the given operations (nil: all), on the thread that makes the call, to change
    /// files between two calls of an operation.
    public init(
      before operations: Set<SystemError.Operation>? = nil, at first: Int,
      run action: @escaping @Sendable () -> Void
    ) {
      self.operations = operations
      self.first = first
      (failsRepeatedly, number) = (false, 0)
      (slowness, fileSystem, self.action, ended) = (nil, nil, action, [])
      skipsSyncs = false
    }

    /// Creates a plan under which no call fails and positioned reads return at most `bytes` bytes,
    /// with a pause in seconds after each: time to change a file while it is read.
    public init(pausing pause: Double, afterReading bytes: Int) {
      (operations, first, failsRepeatedly, number) = ([], Int.max, false, 0)
      (slowness, fileSystem, action, ended) = ((bytes, pause), nil, nil, [])
      skipsSyncs = false
    }

    /// Creates a plan under which no call fails and holes are trusted as on the file system with
    /// this magic number (statfs(2)).
    public init(onFileSystem magic: UInt) {
      (operations, first, failsRepeatedly, number) = ([], Int.max, false, 0)
      (slowness, fileSystem, action, ended) = (nil, magic, nil, [])
      skipsSyncs = false
    }

    /// The number of calls that have passed this plan's fault points.
    public var count: Int { calls.load(ordering: .relaxed) }

    /// Whether the plan has made a call fail.
    public var hasFired: Bool { count >= first }

    func next(_ operation: SystemError.Operation) -> Int32? {
      if let operations, !operations.contains(operation) {
        return hasFired && ended.contains(operation) ? number : nil
      }
      let call = calls.add(1, ordering: .relaxed).newValue
      if let action {
        if call == first { Faults.disarmed(action) }
        return nil
      }
      return call == first || (failsRepeatedly && call > first) ? number : nil
    }
  }

  /// The operations that change a volume.
  public static let changes: Set<SystemError.Operation> = [
    .write, .link, .rename, .remove, .clone, .create, .createDirectory, .createLink, .createSpecial,
    .sync, .truncate, .setMode, .setOwner, .setTimes, .setAttributes, .setFlags,
  ]

  /// Runs `body` with the plan active on this thread and on those it starts.
  public static func inject<Result, Failure: Error>(
    _ plan: Plan, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let before = current
    current = plan
    defer { current = before }
    return try withExtendedLifetime(plan) { () throws(Failure) -> Result in try body() }
  }

  /// Runs `body` without a plan on this thread.
  fileprivate static func disarmed(_ body: () -> Void) {
    let before = current
    current = nil
    defer { current = before }
    body()
  }

  /// The current thread's plan. Callers keep it alive while it is set.
  static var current: Plan? {
    get {
      guard let raw = unsafe cl_fault_plan() else { return nil }
      return unsafe Unmanaged<Plan>.fromOpaque(raw).takeUnretainedValue()
    }
    set {
      unsafe cl_set_fault_plan(newValue.map { unsafe Unmanaged.passUnretained($0).toOpaque() })
    }
  }

  @inline(__always)
  static var areArmed: Bool { unsafe cl_fault_plan() != nil }

  /// Returns the number of bytes to read at once.
  @inline(never)
  static func portion(of wanted: Int) -> Int { min(wanted, current?.slowness?.bytes ?? wanted) }

  /// Returns the magic number of the simulated file system, or nil for the real one.
  @inline(never)
  static func fileSystem() -> UInt? { current?.fileSystem }

  @inline(never)
  static func pauseAfterReading() {
    if let pause = current?.slowness?.pause { Host.pause(seconds: pause) }
  }

  /// Whether calls that make data durable succeed without doing so.
  @inline(__always)
  static var skipsSyncs: Bool { areArmed && current?.skipsSyncs == true }

  @inline(never)
  static func next(_ operation: SystemError.Operation) -> Int32? { current?.next(operation) }
}
