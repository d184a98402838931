internal import Synchronization
public import SystemIO

/// How far an operation is: counted by its threads, looked at by any other.
public final class ProgressCounters: Sendable {
  private let filesToDo = Atomic<Int>(0)
  private let bytesToDo = Atomic<UInt64>(0)
  private let filesDone = Atomic<Int>(0)
  private let bytesDone = Atomic<UInt64>(0)
  private let bytesResumed = Atomic<UInt64>(0)
  private let opened = Atomic<Int>(0)
  private let problems = Atomic<Int>(0)
  private let active = Mutex<ByteString>("")
  private let noun: String

  /// Makes counters of nothing; what counts as a file may be called otherwise.
  public init(of noun: String = "file") { self.noun = noun }

  /// What is counted so far.
  public var progress: ProgressState {
    ProgressState(
      filesToDo: filesToDo.load(ordering: .relaxed), bytesToDo: bytesToDo.load(ordering: .relaxed),
      filesDone: filesDone.load(ordering: .relaxed), bytesDone: bytesDone.load(ordering: .relaxed),
      bytesResumed: bytesResumed.load(ordering: .relaxed),
      opened: opened.load(ordering: .relaxed), problems: problems.load(ordering: .relaxed),
      active: active.withLock { $0 }, noun: noun)
  }

  /// Adds to what is to be done.
  public func expect(files: Int, bytes: UInt64) {
    filesToDo.add(files, ordering: .relaxed)
    bytesToDo.wrappingAdd(bytes, ordering: .relaxed)
  }

  /// Takes a file in hand.
  public func begin(_ path: ByteString) { active.withLock { $0 = path } }

  /// Counts bytes that are done.
  public func didHandle(bytes: UInt64) { bytesDone.wrappingAdd(bytes, ordering: .relaxed) }

  /// Counts bytes that need not be read, as an interrupted run has read and stored them.
  public func didResume(bytes: UInt64) {
    didHandle(bytes: bytes)
    bytesResumed.wrappingAdd(bytes, ordering: .relaxed)
  }

  /// Counts files that are done.
  public func didHandle(files: Int) { filesDone.add(files, ordering: .relaxed) }

  /// Counts a file of the source that was opened.
  public func didOpen() { opened.add(1, ordering: .relaxed) }

  /// Counts something that went wrong.
  public func didFail() { problems.add(1, ordering: .relaxed) }
}

/// How far an operation is.
public struct ProgressState: Sendable, Hashable {
  /// Files that are to be done in all, and their bytes; 0 while that is not known.
  public var filesToDo = 0
  public var bytesToDo: UInt64 = 0
  /// What is done of it. A file that changes while it is read counts each time.
  public var filesDone = 0
  public var bytesDone: UInt64 = 0
  /// Bytes of these that an interrupted run had read already of files that it did not finish.
  public var bytesResumed: UInt64 = 0
  /// Files of the source that were opened.
  public var opened = 0
  /// What went wrong so far.
  public var problems = 0
  /// The logical path of the file that was begun last; empty before the first.
  public var active: ByteString = ""
  /// What is counted as a file: its word for one.
  public var noun = "file"

  /// Makes progress of its parts.
  public init(
    filesToDo: Int = 0, bytesToDo: UInt64 = 0, filesDone: Int = 0, bytesDone: UInt64 = 0,
    bytesResumed: UInt64 = 0, opened: Int = 0, problems: Int = 0, active: ByteString = "",
    noun: String = "file"
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
  }
}
