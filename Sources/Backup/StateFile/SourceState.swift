package import ArchiveStore
internal import Codecs
package import DeviceScan
package import SystemIO

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
package final class SourceState: Sendable {
  let key: StateKey
  let program: String
  /// The start of the run, by the clock of the file system that holds the state.
  package let clock: RunClock
  /// The reasons why the earlier state is not used or no state can be saved; empty if there are
  /// none.
  package let remarks: [String]

  /// The open directory of the repository's files, with the lock in it.
  let place: StateDirectory?
  /// The state of the last finished run.
  let known: KnownState?
  /// The file for this run's records: the known file, or a new one.
  let records: RecordFile?
  let interrupted: ResumeFile

  init(_ opening: StateOpening) {
    key = opening.key
    program = opening.program
    clock = opening.clock
    remarks = opening.remarks
    known = opening.known
    records = opening.records
    interrupted = opening.interrupted
    place = opening.place
  }

  /// The containers that earlier runs stored, in the order of their paths.
  package var containers: [KnownContainer] { known?.containers ?? [] }

  /// Returns the record of a container, or nil if there is none.
  package func container(_ path: ByteString) -> KnownContainer? {
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
    return packs.hold(container.packs, in: file)
  }

  /// Returns the recorded entries of a directory.
  ///
  /// - Parameter entry: the directory's recorded entry in its parent, or that of a container's
  ///   root.
  package func directory(_ entry: KnownEntry?, key: DirectoryKey) -> KnownDirectory {
    directory(at: entry?.directory, key: key)
  }

  /// Returns the recorded entries of a directory whose record is at a location, or that has none.
  func directory(at place: RecordPointer?, key: DirectoryKey) -> KnownDirectory {
    KnownDirectory(known?.file, at: place, parts: interrupted.entries(of: key))
  }

  // MARK: - Recording

  /// Begins a directory's record.
  package func makeRecord() -> DirectoryRecord { DirectoryRecord(records) }

  /// Writes a directory's record; returns its location for the directory's own entry, or nil if it
  /// cannot be written.
  ///
  /// - Parameter tree: the directory's stored tree.
  package func write(_ record: consuming DirectoryRecord, tree: TreeReference?) -> RecordPointer? {
    record.write(tree: tree)
  }

  /// Begins the record of the entries read of a directory, for the next run if this one is
  /// interrupted.
  package func makeCheckpoint(_ key: DirectoryKey) -> DirectoryCheckpoint {
    DirectoryCheckpoint(interrupted, key)
  }

  /// Returns the pieces that interrupted runs read of a large file with the given status.
  package func pieces(of file: DirectoryKey, _ status: FileStatus) -> ResumableChunks {
    ResumableChunks(in: interrupted, of: file, status: status)
  }

  /// Lets `body` record the pieces of a large file as it reads them, for the next run if this one
  /// is interrupted in it.
  package func recordingPieces<Result>(
    of file: DirectoryKey, _ status: FileStatus, _ body: (ChunkCheckpoint) throws -> Result
  ) rethrows -> Result {
    let notes = ChunkCheckpoint(in: interrupted, of: file, status: status)
    return try interrupted.noting(notes) { try body(notes) }
  }

  /// Makes the recorded entries durable. To be called after the repository's own checkpoint.
  package func checkpoint() throws(SystemError) { try interrupted.checkpoint() }
}
