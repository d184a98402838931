internal import ArchiveStore
internal import DeviceScan
package import SystemIO

/// The parts of a state that are opened for a run. A step that fails leaves a remark, and its part
/// is nil.
struct StateOpening {
  let key: StateKey
  let program: String
  let clock: RunClock
  let remarks: [String]
  var place: StateDirectory?
  var known: KnownState?
  var records: RecordFile?
  let interrupted: ResumeFile
}

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
  /// - Throws: `busy` if another run of the same source is in progress.
  package static func open(
    _ key: StateKey, in cache: ByteString?, program: String, under lock: SourceLock? = nil
  ) throws(OperationError) -> SourceState {
    guard let cache else {
      return .absent(key, program: program, remark: "there is no cache directory")
    }
    do throws(SystemError) {
      let place = try StateDirectory(key, in: cache, under: lock)
      return SourceState(StateOpening(in: place, key: key, program: program))
    } catch {
      if error.isBusy { throw .anotherRun(error, of: key, in: cache) }
      return .absent(key, program: program, remark: error.description)
    }
  }

  /// Returns the state with the entries that this run has read so far, as after an interruption. To
  /// be called after a checkpoint; this value must not be used afterwards.
  func reopened() -> SourceState {
    place.map { SourceState(StateOpening(in: $0, key: key, program: program)) } ?? self
  }

  /// Returns an empty state that is not saved.
  static func absent(_ key: StateKey, program: String, remark: String) -> SourceState {
    SourceState(StateOpening(key, program: program, remark: remark))
  }
}

extension OperationError {
  static func anotherRun(
    _ error: SystemError, of key: StateKey, in cache: ByteString
  ) -> OperationError {
    let directory = try? Directory.open(path: key.directory(in: cache))
    var holder: LockHolder?
    if let directory { holder = FileLock.holder(of: key.lock, in: directory) }
    return OperationError(
      .busy,
      "cannot back up: another backup of the same source is in progress"
        + (holder?.words ?? " (\(error.path))"),
      hint: "wait until it has ended, or use '--lock-wait 10m' to wait for it")
  }
}

extension StateOpening {
  fileprivate init(_ key: StateKey, program: String, remark: String) {
    self.init(
      key: key, program: program, clock: RunClock(start: Host.now()), remarks: [remark],
      interrupted: ResumeFile(nil))
  }

  fileprivate init(in place: StateDirectory, key: StateKey, program: String) {
    var remarks: [String] = []
    let start = (try? place.time(key)) ?? Host.now()
    let known = Self.known(in: place, key: key, remarks: &remarks)
    let records = known?.file ?? Self.newFile(in: place, key: key, remarks: &remarks)
    let interrupted = Self.interrupted(in: place, key: key, program: program, remarks: &remarks)
    self.init(
      key: key, program: program, clock: RunClock(start: min(start, Host.now())),
      remarks: remarks, place: place, known: known, records: records, interrupted: interrupted)
  }

  private static func known(
    in place: StateDirectory, key: StateKey, remarks: inout [String]
  ) -> KnownState? {
    do {
      switch try place.open(key.state) {
      case .absent: return nil
      case .refused(let reason): throw StateFault(reason)
      case .open(let file): return try KnownState(file, key)
      }
    } catch let fault as StateFault {
      remarks.append("the state '\(place.path(key.state))' is not used: \(fault.reason)")
    } catch {
      remarks.append("the state is not used: \(error)")
    }
    return nil
  }

  private static func newFile(
    in place: StateDirectory, key: StateKey, remarks: inout [String]
  ) -> RecordFile? {
    do throws(SystemError) {
      return RecordFile(try place.create(key.replacement), end: StateHead.firstRecord)
    } catch {
      remarks.append("the state cannot be saved: \(error)")
      return nil
    }
  }

  /// Opens the file of an interrupted run, or creates the file for this one.
  private static func interrupted(
    in place: StateDirectory, key: StateKey, program: String, remarks: inout [String]
  ) -> ResumeFile {
    do throws(SystemError) {
      if case .open(let file) = try place.open(key.partial),
        let head = StateHead(try file.read(count: StateHead.size, at: 0)), head.key == key
      {
        return ResumeFile(file)
      }
      let file = try place.create(key.partial)
      let head = StateHead(key, program: program, end: UInt64(StateHead.size))
      try file.write(head.encoded(), at: 0)
      return ResumeFile(file)
    } catch {
      remarks.append("an interrupted run cannot be resumed: \(error)")
      return ResumeFile(nil)
    }
  }
}
