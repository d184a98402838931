internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import SystemIO

// State: the entries that earlier backups of a source recorded, so that nothing is read twice.
//
// It is a file of records on the backed-up host, one for each directory; a parent's entry points to
// the records of its children, with their checksums. A run joins each directory's record with the
// current entries in the order of names, and appends records only of changed directories. A head in
// one of two positions, written last, makes them the state. docs/state-file.md is the format.
//
// Guaranteed: whatever the files hold, a reader returns entries as some run wrote them, or none.
// Not guaranteed: that the files exist. A lost or old state costs time for reading; `ChangeRules`
// and the repository decide whether recorded contents are still valid.

/// The state of one source for one run, under the source's lock, which is released with it.
///
/// Several threads can look up and record entries. Recording never fails: `finish` reports once
/// that something could not be written, and the next run reads it again.
final class SourceState: Sendable {
  let key: StateKey
  let program: String
  /// The start of the run, by the clock of the file system that holds the state.
  let clock: RunClock
  /// The boot of the machine in which the run takes place.
  let boot: Boot
  /// The reasons why the earlier state is not used or no state can be saved; empty if there are
  /// none.
  let remarks: [String]

  /// The open directory of the repository's files, with the lock in it.
  let directory: StateDirectory?
  /// The state of the last finished run.
  let known: KnownState?
  /// The file for this run's records: the known file, or a new one.
  let records: RecordFile?
  /// The lists of pieces of large files that this run stores.
  let lists: RecordedLists
  let interrupted: ResumeFile

  private init(
    _ key: StateKey, program: String, clock: RunClock, boot: Boot, remarks: [String],
    directory: StateDirectory? = nil, known: KnownState? = nil, records: RecordFile? = nil,
    interrupted: ResumeFile = ResumeFile(nil)
  ) {
    (self.key, self.program, self.clock, self.remarks) = (key, program, clock, remarks)
    self.boot = boot
    (self.directory, self.known, self.records) = (directory, known, records)
    (self.interrupted, lists) = (interrupted, RecordedLists(records))
  }

  /// The containers that earlier runs stored, in the order of their paths.
  var containers: [KnownContainer] { known?.containers ?? [] }

  /// Returns the record of a container, or nil if there is none.
  func container(_ path: ByteString) -> KnownContainer? {
    let containers = containers
    var (low, high) = (0, containers.count)
    while low < high {
      let middle = (low + high) / 2
      if containers[middle].path < path { low = middle + 1 } else { high = middle }
    }
    return low < containers.count && containers[low].path == path ? containers[low] : nil
  }

  /// Whether the repository has each pack that it had when a container was recorded.
  func arePacksThere(_ packs: ListedPacks, for container: KnownContainer) -> Bool {
    guard let file = known?.file else { return false }
    return packs.contains(container.packs, in: file)
  }

  /// Returns the recorded entries of a directory whose record is at a location, or that has none.
  func directory(at record: RecordPointer?, key: DirectoryKey) -> KnownDirectory {
    KnownDirectory(known?.file, at: record, parts: interrupted.entries(of: key))
  }

  /// Whether the machine has not restarted since an entry was recorded: its times show each change.
  func isOfThisBoot(_ entry: KnownEntry) -> Bool {
    if entry.isOfInterruptedRun { return resumesThisBoot }
    return known?.head.boot.isSame(as: boot) ?? false
  }

  /// Whether the machine has not restarted since the interrupted runs.
  var resumesThisBoot: Bool { interrupted.boot.isSame(as: boot) }

  // MARK: - Recording

  /// Begins a directory's record.
  func makeRecord() -> DirectoryRecord { DirectoryRecord(records) }

  /// Writes a directory's record; returns its location for the directory's own entry, or nil if it
  /// cannot be written.
  ///
  /// - Parameter tree: the directory's stored tree.
  func write(_ record: consuming DirectoryRecord, tree: TreeReference?) -> RecordPointer? {
    record.write(tree: tree)
  }

  /// Begins the record of the entries read of a directory, for the next run if this one is
  /// interrupted.
  func makeCheckpoint(_ key: DirectoryKey) -> DirectoryCheckpoint {
    DirectoryCheckpoint(interrupted, key)
  }

  /// Returns the pieces that interrupted runs read of a large file with the given status.
  func pieces(of file: DirectoryKey, _ status: FileStatus) -> ResumableChunks {
    ResumableChunks(in: interrupted, of: file, status: status)
  }

  /// Lets `body` record the pieces of a large file as it reads them, for the next run if this one
  /// is interrupted in it.
  func recordingPieces<Result>(
    of file: DirectoryKey, _ status: FileStatus, _ body: (ChunkCheckpoint) throws -> Result
  ) rethrows -> Result {
    let chunks = ChunkCheckpoint(in: interrupted, of: file, status: status)
    return try interrupted.including(chunks) { try body(chunks) }
  }

  /// Makes the recorded entries durable. To be called after the repository's own checkpoint.
  func checkpoint() throws(SystemError) { try interrupted.checkpoint() }
}

// MARK: - Opening

extension SourceState {
  /// Takes the source's lock and opens the state of earlier runs.
  ///
  /// A state that is damaged, that another user owns, or that belongs to another source is not
  /// used, which a remark reports. Without a directory for the state, the run continues without
  /// one.
  ///
  /// - Parameters:
  ///   - cache: the cache directory, as in `Host.cacheDirectory`.
  ///   - program: the program and its version.
  ///   - lock: the source's lock, if the caller holds it.
  ///   - boot: the boot of the machine.
  /// - Throws: `busy` if another run of the same source is in progress.
  static func open(
    _ key: StateKey, in cache: ByteString?, program: String, under lock: SourceLock? = nil,
    boot: Boot = Boot(Host.bootID)
  ) throws(OperationError) -> SourceState {
    guard let cache else {
      return .absent(key, program: program, remark: "there is no cache directory")
    }
    do throws(SystemError) {
      let directory = try StateDirectory(key, in: cache, under: lock)
      return SourceState(key, program: program, boot: boot, in: directory)
    } catch {
      if error.isBusy { throw .anotherRun(error, of: key, in: cache) }
      return .absent(key, program: program, remark: error.description)
    }
  }

  /// Returns the state with the entries that this run has read so far, as after an interruption. To
  /// be called after a checkpoint; this value must not be used afterwards.
  func reopened() -> SourceState {
    directory.map { SourceState(key, program: program, boot: boot, in: $0) } ?? self
  }

  /// Returns an empty state that is not saved.
  static func absent(_ key: StateKey, program: String, remark: String) -> SourceState {
    SourceState(
      key, program: program, clock: RunClock(start: Host.now()), boot: .unknown, remarks: [remark])
  }

  /// Opens the parts of the state. A step that fails leaves a remark, and its part is nil.
  private convenience init(
    _ key: StateKey, program: String, boot: Boot, in directory: StateDirectory
  ) {
    var remarks: [String] = []
    let start = (try? directory.time(key)) ?? Host.now()
    let known = Self.known(in: directory, key: key, remarks: &remarks)
    let records = known?.file ?? Self.newFile(in: directory, key: key, remarks: &remarks)
    let interrupted = Self.interrupted(
      in: directory, key: key, program: program, boot: boot, remarks: &remarks)
    self.init(
      key, program: program, clock: RunClock(start: min(start, Host.now())), boot: boot,
      remarks: remarks, directory: directory, known: known, records: records,
      interrupted: interrupted)
  }

  private static func known(
    in directory: StateDirectory, key: StateKey, remarks: inout [String]
  ) -> KnownState? {
    do {
      switch try directory.open(key.state) {
      case .absent: return nil
      case .refused(let reason): throw KnownState.Fault(reason)
      case .open(let file): return try KnownState(file, key)
      }
    } catch let fault as KnownState.Fault {
      remarks.append("the state '\(directory.path(key.state))' is not used: \(fault.reason)")
    } catch {
      remarks.append("the state is not used: \(error)")
    }
    return nil
  }

  private static func newFile(
    in directory: StateDirectory, key: StateKey, remarks: inout [String]
  ) -> RecordFile? {
    do throws(SystemError) {
      return RecordFile(try directory.create(key.replacement), end: KnownState.Head.firstRecord)
    } catch {
      remarks.append("the state cannot be saved: \(error)")
      return nil
    }
  }

  /// Opens the file of an interrupted run, or creates the file for this one. A file keeps the boot
  /// in which it was begun, whatever later runs append.
  private static func interrupted(
    in directory: StateDirectory, key: StateKey, program: String, boot: Boot,
    remarks: inout [String]
  ) -> ResumeFile {
    do throws(SystemError) {
      if case .open(let file) = try directory.open(key.partial),
        let head = KnownState.Head(try file.read(count: KnownState.Head.size, at: 0)),
        head.key == key
      {
        let known = ResumeFile(file, boot: head.boot)
        if head.boot.isSame(as: boot) || !known.isEmpty { return known }
      }
      let file = try directory.create(key.partial)
      let head = KnownState.Head(
        key, program: program, end: UInt64(KnownState.Head.size), boot: boot)
      try file.write(head.encoded(), at: 0)
      return ResumeFile(file, boot: boot)
    } catch {
      remarks.append("an interrupted run cannot be resumed: \(error)")
      return ResumeFile(nil)
    }
  }
}
