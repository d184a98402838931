internal import Synchronization
public import SystemIO

/// The progress of an operation, updated by its threads and readable from any thread.
public final class ProgressCounters: Sendable {
  private let filesToDo = Atomic<Int>(0)
  private let bytesToDo = Atomic<UInt64>(0)
  private let filesDone = Atomic<Int>(0)
  private let bytesDone = Atomic<UInt64>(0)
  private let bytesResumed = Atomic<UInt64>(0)
  private let opened = Atomic<Int>(0)
  private let unchanged = Atomic<Int>(0)
  private let problems = Atomic<Int>(0)
  private let names: Mutex<Names>

  private struct Names {
    var active: ByteString = ""
    var noun: String
  }

  /// Creates counters that start at zero, with `noun` as the word for one counted item.
  public init(of noun: String = "file") { names = Mutex(Names(noun: noun)) }

  /// The current counts.
  public var progress: State {
    let names = names.withLock { $0 }
    return State(
      filesToDo: filesToDo.load(ordering: .relaxed), bytesToDo: bytesToDo.load(ordering: .relaxed),
      filesDone: filesDone.load(ordering: .relaxed), bytesDone: bytesDone.load(ordering: .relaxed),
      bytesResumed: bytesResumed.load(ordering: .relaxed),
      opened: opened.load(ordering: .relaxed), problems: problems.load(ordering: .relaxed),
      active: names.active, noun: names.noun, unchanged: unchanged.load(ordering: .relaxed))
  }

  /// Adds to the expected totals.
  public func expect(files: Int, bytes: UInt64) {
    filesToDo.add(files, ordering: .relaxed)
    bytesToDo.wrappingAdd(bytes, ordering: .relaxed)
  }

  /// Sets the path of the current file.
  public func begin(_ path: ByteString) { names.withLock { $0.active = path } }

  /// Begins a part of the work that counts other items: sets the numbers of files and bytes to 0,
  /// and the word for one item.
  public func begin(counting noun: String) {
    names.withLock { $0 = Names(noun: noun) }
    filesToDo.store(0, ordering: .relaxed)
    filesDone.store(0, ordering: .relaxed)
    bytesToDo.store(0, ordering: .relaxed)
    bytesDone.store(0, ordering: .relaxed)
    bytesResumed.store(0, ordering: .relaxed)
  }

  /// Counts processed bytes.
  public func didHandle(bytes: UInt64) { bytesDone.wrappingAdd(bytes, ordering: .relaxed) }

  /// Counts bytes that an interrupted run has already read and stored.
  public func didResume(bytes: UInt64) {
    didHandle(bytes: bytes)
    bytesResumed.wrappingAdd(bytes, ordering: .relaxed)
  }

  /// Counts processed files.
  public func didHandle(files: Int) { filesDone.add(files, ordering: .relaxed) }

  /// Counts an opened source file.
  public func didOpen() { opened.add(1, ordering: .relaxed) }

  /// Counts a processed file that is unchanged since an earlier run and was not read.
  public func didFindUnchanged() { unchanged.add(1, ordering: .relaxed) }

  /// Counts a problem.
  public func didFail() { problems.add(1, ordering: .relaxed) }
}

extension ProgressCounters {
  /// A snapshot of an operation's progress.
  public struct State: Sendable, Hashable {
    /// The expected number of files and their bytes; 0 while unknown.
    public var filesToDo = 0
    public var bytesToDo: UInt64 = 0
    /// The processed files and bytes. A file that changes while it is read is counted each time.
    public var filesDone = 0
    public var bytesDone: UInt64 = 0
    /// The part of `bytesDone` that an interrupted run had read of files it did not finish.
    public var bytesResumed: UInt64 = 0
    /// The number of source files that were opened.
    public var opened = 0
    /// The number of problems so far.
    public var problems = 0
    /// The logical path of the current file; empty before the first.
    public var active: ByteString = ""
    /// The word for one counted item.
    public var noun = "file"
    /// The number of processed files that are unchanged since an earlier run and were not read, as
    /// far as the operation counts them.
    public var unchanged = 0

    /// Creates a state from its parts.
    public init(
      filesToDo: Int = 0, bytesToDo: UInt64 = 0, filesDone: Int = 0, bytesDone: UInt64 = 0,
      bytesResumed: UInt64 = 0, opened: Int = 0, problems: Int = 0, active: ByteString = "",
      noun: String = "file", unchanged: Int = 0
    ) {
      self.filesToDo = filesToDo
      self.bytesToDo = bytesToDo
      self.filesDone = filesDone
      self.bytesDone = bytesDone
      self.bytesResumed = bytesResumed
      self.opened = opened
      self.problems = problems
      self.active = active
      self.noun = noun
      self.unchanged = unchanged
    }
  }
}
