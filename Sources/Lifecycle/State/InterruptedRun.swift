internal import Codecs
internal import Synchronization
internal import SystemIO

/// What a run that did not come to its end has read, and what this one reads: `<source>.partial`
/// (docs/state-file.md, "Interrupted runs").
///
/// A file of batches, each with its folder's key. A batch that is not whole ends it.
final class InterruptedRun: Sendable {
  private let file: RecordFile?
  /// The batches that were there when the run began.
  private let batches: [FolderKey: [RecordPlace]]
  private let made = Atomic<Int>(0)

  /// What is before a batch's entries: the folder's key.
  private static let headerSize = Digest.byteCount
  /// What is before a batch: its length and its checksum.
  private static let frameSize = 12

  /// Takes an open file that has a head, or no file.
  init(_ descriptor: consuming Descriptor?) {
    guard let descriptor = consume descriptor else {
      (file, batches) = (nil, [:])
      return
    }
    let (batches, end) = Self.scan(descriptor)
    self.batches = batches
    file = RecordFile(descriptor, end: end)
  }

  /// The folders of which an earlier run left something.
  var folders: some Sequence<FolderKey> { batches.keys }

  /// How many checkpoints this run has made.
  var checkpoints: Int { made.load(ordering: .relaxed) }

  /// What is known of a folder, the oldest first.
  func entries(of key: FolderKey) -> [EntryCursor] {
    guard let file, let places = batches[key] else { return [] }
    return places.compactMap { place in
      guard let bytes = file.read(place), bytes.count >= Self.headerSize,
        let page = EntryPage(bytes, from: Self.headerSize)
      else { return nil }
      return EntryCursor(interrupted: page)
    }
  }

  /// Appends a batch of entries in order.
  func append(_ entries: [UInt8], in key: FolderKey) {
    guard let file else { return }
    var batch = key.digest.bytes
    batch += entries
    let place = RecordPlace(of: batch, at: 0)
    var framed: [UInt8] = []
    LittleEndian.append(place.length, to: &framed)
    LittleEndian.append(place.sum, to: &framed)
    _ = file.appendPlain(framed + batch)
  }

  /// Makes all that was handed over durable.
  func checkpoint() throws(SystemError) {
    made.add(1, ordering: .relaxed)
    try file?.flush()
    try file?.descriptor.sync()
  }

  /// Finds the batches of a file, up to the first that is not whole.
  private static func scan(
    _ file: borrowing Descriptor
  ) -> (batches: [FolderKey: [RecordPlace]], end: UInt64) {
    var batches: [FolderKey: [RecordPlace]] = [:]
    var end = UInt64(StateHead.size)
    while let frame = try? file.read(count: frameSize, at: end), frame.count == frameSize {
      let start = end + UInt64(frameSize)
      let place = RecordPlace(
        offset: start, length: LittleEndian.integer(frame.span, at: 0),
        sum: LittleEndian.integer(frame.span, at: 4))
      guard let batch = place.bytes(in: file), batch.count >= headerSize,
        let digest = Digest(batch.span.extracting(0..<Digest.byteCount))
      else { break }
      batches[FolderKey(digest), default: []].append(place)
      end = start + UInt64(place.length)
    }
    return (batches, end)
  }
}
