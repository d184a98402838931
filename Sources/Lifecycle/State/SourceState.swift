public import ArchiveStore
internal import Codecs
public import SystemIO

// State: what earlier backups of a source knew of each entry, so that nothing is read twice.
//
// A file of records on the backed-up host, one for each directory, a parent's entry pointing to its
// children's records with their checksums. A run joins each directory's record with what is there by
// the order of names, and appends records only of directories in which something changed; a head in
// one of two places, written last, makes them the state. docs/state-file.md is the format.
//
// Guaranteed: whatever the files hold, a reader gives entries as some run wrote them, or nothing.
// Not guaranteed: that they are there. A state that is lost or old costs readings; whether what it
// says of contents still holds is for `ChangeRules` and the repository to say.

/// The state of one source for one run, under the source's lock; the lock goes with it.
///
/// Several threads may ask and record. Recording never fails: what cannot be written is told once,
/// by `finish`, and costs readings in the next run.
public final class SourceState: Sendable {
  let key: StateKey
  let program: String
  /// When the run began, by the clock of the file system that the state lies on.
  public let clock: RunClock
  /// Why what earlier runs left is not used, or nothing can be kept; empty when all is well.
  public let remarks: [String]

  /// The open directory of the repository's files, and the lock in it.
  let place: StateDirectory?
  /// What the last finished run knew.
  let known: KnownState?
  /// Where this run's records go: behind those known, or into a new file.
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
  public var containers: [KnownContainer] { known?.containers ?? [] }

  /// What is known of a container.
  public func container(_ path: ByteString) -> KnownContainer? {
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

  /// What is known of a directory.
  ///
  /// - Parameter entry: what is known of the directory as an entry of its parent, or a container's root.
  public func directory(_ entry: KnownEntry?, key: DirectoryKey) -> KnownDirectory {
    directory(at: entry?.directory, key: key)
  }

  /// What is known of a directory whose record is at a place, or that has none.
  func directory(at place: RecordPointer?, key: DirectoryKey) -> KnownDirectory {
    KnownDirectory(known?.file, place, interrupted.entries(of: key))
  }

  // MARK: - Recording

  /// Begins a directory's record.
  public func makeRecord() -> DirectoryRecord { DirectoryRecord(records) }

  /// Writes a directory's record, for the directory's own entry; nothing when it cannot be kept.
  ///
  /// - Parameter tree: the directory's stored tree.
  public func write(_ record: consuming DirectoryRecord, tree: TreeReference?) -> RecordPointer? {
    record.write(tree: tree)
  }

  /// Begins the notes of what is read of a directory, for the next run if this one is interrupted.
  public func makeNotes(_ key: DirectoryKey) -> DirectoryCheckpoint {
    DirectoryCheckpoint(interrupted, key)
  }

  /// What interrupted runs read of a large file, where it is as `status` says.
  public func pieces(of file: DirectoryKey, _ status: FileStatus) -> ResumableChunks {
    ResumableChunks(interrupted, file, status)
  }

  /// Lets `body` note the pieces of a large file as it reads them, for the next run if this one is
  /// interrupted in it.
  public func notingPieces<Result>(
    of file: DirectoryKey, _ status: FileStatus, _ body: (ChunkCheckpoint) throws -> Result
  ) rethrows -> Result {
    let notes = ChunkCheckpoint(interrupted, file, status)
    return try interrupted.noting(notes) { try body(notes) }
  }

  /// Makes the notes that were handed over durable: after the repository's own checkpoint.
  public func checkpoint() throws(SystemError) { try interrupted.checkpoint() }
}
