internal import Codecs
public import SystemIO

/// What a run has read of one directory so far, kept for the next run in case that this one does not
/// come to its end.
///
/// One thread uses one. Notes reach the file in batches, when the directory changes hands by `flush()`,
/// and when a checkpoint has been made since the last.
public struct DirectoryCheckpoint {
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

  /// Notes an entry that was read and of which all blobs were handed to the repository.
  public mutating func add(
    _ name: ByteString, _ status: FileStatus, isStable: Bool, encoded: [UInt8]
  ) {
    if let last, !(last < name) { flush() }
    let isWhole = name.withSpan { name in
      EntryLayout.append(name, status, isStable: isStable, encoded, nil, to: &entries)
    }
    guard isWhole else { return }
    last = name
    if entries.count >= Self.batch || checkpoint != run.checkpoints { flush() }
  }

  /// Hands over what was noted.
  public mutating func flush() {
    checkpoint = run.checkpoints
    last = nil
    guard !entries.isEmpty else { return }
    run.append(entries, in: key)
    entries.removeAll(keepingCapacity: true)
  }
}
