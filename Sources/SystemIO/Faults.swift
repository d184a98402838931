internal import CLinux
internal import Synchronization

/// Fault points for tests: every call to the system can be made to fail at its n-th time.
///
/// A plan belongs to the thread that set it and to the worker threads that it starts, so that tests
/// can run side by side. Without a plan a fault point costs one thread-local load.
public enum Faults {
  /// Which calls fail, and how.
  public final class Plan: Sendable {
    let operations: Set<SystemError.Operation>?
    let first: Int
    let staysBroken: Bool
    let number: Int32
    /// How many bytes a reading at a place gets at a time, and how long it pauses after each.
    let slowness: (bytes: Int, pause: Double)?
    /// The magic number of the file system that files appear to lie on (statfs(2)).
    let fileSystem: UInt?
    private let calls = Atomic<Int>(0)

    /// Makes a plan: the call number `first` (from 1) of the given operations (nil: of all) fails
    /// with the error `number`, and when `staysBroken` all that come after it, too.
    public init(
      failing operations: Set<SystemError.Operation>? = nil, at first: Int, number: Int32,
      staysBroken: Bool = false
    ) {
      self.operations = operations
      self.first = first
      self.number = number
      self.staysBroken = staysBroken
      (slowness, fileSystem) = (nil, nil)
    }

    /// Makes a plan under which no call fails, and files are read at places so many bytes at a time,
    /// with a pause, in seconds, after each: so that whoever changes them meanwhile has time to.
    public init(pausing pause: Double, afterReading bytes: Int) {
      (operations, first, staysBroken, number) = ([], Int.max, false, 0)
      (slowness, fileSystem) = ((bytes, pause), nil)
    }

    /// Makes a plan under which no call fails, and holes are believed as on the file system of that
    /// magic number (statfs(2)).
    public init(onFileSystem magic: UInt) {
      (operations, first, staysBroken, number) = ([], Int.max, false, 0)
      (slowness, fileSystem) = (nil, magic)
    }

    /// How many calls have passed this plan's fault points.
    public var count: Int { calls.load(ordering: .relaxed) }

    /// Whether the plan has made a call fail.
    public var hasFired: Bool { count >= first }

    func next(_ operation: SystemError.Operation) -> Int32? {
      if let operations, !operations.contains(operation) { return nil }
      let call = calls.add(1, ordering: .relaxed).newValue
      return call == first || (staysBroken && call > first) ? number : nil
    }
  }

  /// Runs `body` with the plan in force on this thread and on those it starts.
  public static func inject<Result, Failure: Error>(
    _ plan: Plan, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let before = current
    current = plan
    defer { current = before }
    return try withExtendedLifetime(plan) { () throws(Failure) -> Result in try body() }
  }

  /// The plan of the running thread. Whoever sets one keeps it alive while it is set.
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

  /// How many bytes of those that are wanted are read at once.
  @inline(never)
  static func portion(of wanted: Int) -> Int { min(wanted, current?.slowness?.bytes ?? wanted) }

  /// The magic number of the file system that files appear to lie on; nil for their own.
  @inline(never)
  static func fileSystem() -> UInt? { current?.fileSystem }

  @inline(never)
  static func pauseAfterReading() {
    if let pause = current?.slowness?.pause { Host.pause(seconds: pause) }
  }

  @inline(never)
  static func next(_ operation: SystemError.Operation) -> Int32? { current?.next(operation) }
}
