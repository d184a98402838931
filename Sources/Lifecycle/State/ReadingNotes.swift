internal import Codecs
public import SystemIO

/// What a run has read of one folder so far, kept for the next run in case that this one does not
/// come to its end.
///
/// One thread uses one. Notes reach the file in batches, when the folder changes hands by `flush()`,
/// and when a checkpoint has been made since the last.
public struct ReadingNotes {
  private let run: InterruptedRun
  private let key: FolderKey
  private var entries: [UInt8] = []
  private var last: ByteString?
  private var checkpoint: Int

  private static let batch = 64 << 10

  init(_ run: InterruptedRun, _ key: FolderKey) {
    self.run = run
    self.key = key
    checkpoint = run.checkpoints
  }

  /// Notes an entry that was read and of which all blobs were handed to the repository.
  public mutating func add(
    _ name: ByteString, _ status: FileStatus, isSettled: Bool, encoded: [UInt8]
  ) {
    if let last, !(last < name) { flush() }
    let isWhole = name.withSpan { name in
      EntryLayout.append(name, status, isSettled: isSettled, encoded, nil, to: &entries)
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
