internal import Codecs
package import SystemIO

/// The entries of one directory that a run has read so far, recorded for the next run in case this
/// one does not reach the end of the directory.
///
/// For use by one thread at a time. Entries are written in batches, by `flush()` before another
/// thread continues the directory, and with the next entry after a checkpoint.
package struct DirectoryCheckpoint {
  private let run: ResumeFile
  private let key: DirectoryKey
  private var entries: [UInt8] = []
  private var last: ByteString?
  private var checkpoint: Int

  private static let batch = 64 << 10

  init(_ run: ResumeFile, _ key: DirectoryKey) {
    self.run = run
    self.key = key
    checkpoint = run.checkpoints
  }

  /// Adds an entry that was read and whose blobs were all passed to the repository.
  package mutating func add(
    _ name: ByteString, _ status: FileStatus, isStable: Bool, encoded: [UInt8]
  ) {
    if let last, !(last < name) { flush() }
    let isWhole = name.withSpan { name in
      EntryLayout.append(
        name, status: status, isStable: isStable, encoded: encoded, directory: nil, to: &entries)
    }
    guard isWhole else { return }
    last = name
    if entries.count >= Self.batch || checkpoint != run.checkpoints { flush() }
  }

  /// Writes the added entries.
  package mutating func flush() {
    checkpoint = run.checkpoints
    last = nil
    guard !entries.isEmpty else { return }
    run.append(entries, in: key)
    entries.removeAll(keepingCapacity: true)
  }
}
