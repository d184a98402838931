internal import Codecs
internal import Synchronization
internal import SystemIO

/// The entries that interrupted runs read, and those that this run reads: `<source>.partial`
/// (docs/state-file.md, "Interrupted runs").
///
/// The file consists of batches, each with the key of its directory or large file. An incomplete
/// batch ends it.
final class ResumeFile: Sendable {
  private let file: RecordFile?
  /// The batches that existed when the run began.
  private let batches: [DirectoryKey: [RecordPointer]]
  /// The end of these batches.
  private let start: UInt64
  /// The boot of the machine in which the file was begun.
  let boot: Boot
  private let made = Atomic<Int>(0)
  /// The large files that threads are reading.
  private let active = Mutex<[ObjectIdentifier: ChunkCheckpoint]>([:])

  /// The size of the key before a batch's entries.
  private static let headerSize = Digest.byteCount
  /// The size of the length and the checksum before a batch.
  private static let frameSize = 12

  /// Takes an open file that has a head, or no file.
  init(_ descriptor: consuming Descriptor?, boot: Boot = .unknown) {
    self.boot = boot
    guard let descriptor = consume descriptor else {
      (file, batches, start) = (nil, [:], 0)
      return
    }
    let (batches, end) = Self.scan(descriptor)
    (self.batches, start) = (batches, end)
    file = RecordFile(descriptor, end: end)
  }

  /// The keys of the directories and large files for which an earlier run recorded anything.
  var keys: some Sequence<DirectoryKey> { batches.keys }

  /// Whether no earlier run recorded anything.
  var isEmpty: Bool { batches.isEmpty }

  /// The number of checkpoints that this run has made.
  var checkpoints: Int { made.load(ordering: .relaxed) }

  /// Returns the recorded entries of a directory, the oldest first.
  func entries(of key: DirectoryKey) -> [EntryPage.Cursor] {
    guard let file, let pointers = batches[key] else { return [] }
    return pointers.compactMap { pointer in
      guard let bytes = file.read(pointer), bytes.count >= Self.headerSize,
        let page = EntryPage(bytes, from: Self.headerSize)
      else { return nil }
      return EntryPage.Cursor(interrupted: page)
    }
  }

  /// Appends a batch: entries in order, or a file with its pieces.
  func append(_ content: [UInt8], in key: DirectoryKey) {
    guard let file else { return }
    var batch = key.digest.bytes
    batch += content
    let pointer = RecordPointer(of: batch, at: 0)
    var framed: [UInt8] = []
    LittleEndian.append(pointer.length, to: &framed)
    LittleEndian.append(pointer.sum, to: &framed)
    _ = file.appendPlain(framed + batch)
  }

  /// Makes all batches durable, including the pieces recorded of the current large files.
  func checkpoint() throws(SystemError) {
    made.add(1, ordering: .relaxed)
    for checkpoint in active.withLock({ Array($0.values) }) { checkpoint.flush() }
    try file?.flush()
    try file?.descriptor.sync()
  }

  /// Removes the batches of this run, whose entries are now in the state.
  func forget() throws(SystemError) { try file?.descriptor.truncate(to: start) }

  // MARK: - Large files

  /// Returns the batches of a large file's pieces.
  func batches(of key: DirectoryKey) -> [RecordPointer] { batches[key] ?? [] }

  /// Returns the version of a large file and its pieces, or nil if the batch is a directory's.
  func filePart(at pointer: RecordPointer) -> (
    file: ChunkCheckpoint.FileVersion, pieces: [ChunkCheckpoint.Piece]
  )? {
    let start = Self.headerSize + ChunkCheckpoint.FileVersion.size
    guard let bytes = file?.read(pointer), bytes.count >= start else { return nil }
    let span = bytes.span
    let file = ChunkCheckpoint.FileVersion(span.extracting(Self.headerSize..<start))
    let pieces = ChunkCheckpoint.Piece.read(
      span.extracting(start..<span.count), ofSize: file.fileSize)
    return pieces.map { (file, $0) }
  }

  /// Includes the pieces that `body` records of a file in checkpoints. If `body` throws, they are
  /// written; otherwise the file's entry replaces them.
  func including<Result>(
    _ chunks: ChunkCheckpoint, _ body: () throws -> Result
  ) rethrows -> Result {
    active.withLock { $0[ObjectIdentifier(chunks)] = chunks }
    defer { active.withLock { $0[ObjectIdentifier(chunks)] = nil } }
    do {
      return try body()
    } catch {
      chunks.flush()
      throw error
    }
  }

  // MARK: - Opening

  /// Finds the batches of a file, up to the first incomplete one.
  private static func scan(
    _ file: borrowing Descriptor
  ) -> (batches: [DirectoryKey: [RecordPointer]], end: UInt64) {
    var batches: [DirectoryKey: [RecordPointer]] = [:]
    var end = UInt64(KnownState.Head.size)
    while let frame = try? file.read(count: frameSize, at: end), frame.count == frameSize {
      let start = end + UInt64(frameSize)
      let pointer = RecordPointer(
        offset: start, length: LittleEndian.integer(frame.span, at: 0),
        sum: LittleEndian.integer(frame.span, at: 4))
      guard let batch = pointer.bytes(in: file), batch.count >= headerSize,
        let digest = Digest(batch.span.extracting(0..<Digest.byteCount))
      else { break }
      batches[DirectoryKey(digest), default: []].append(pointer)
      end = start + UInt64(pointer.length)
    }
    return (batches, end)
  }
}

/// The entries of one directory that a run has read so far, recorded for the next run in case this
/// one does not reach the end of the directory.
///
/// For use by one thread at a time. Entries are written in batches, by `flush()` before another
/// thread continues the directory, and with the next entry after a checkpoint.
struct DirectoryCheckpoint {
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
  mutating func add(
    _ name: ByteString, _ status: FileStatus, isStable: Bool, encoded: [UInt8]
  ) {
    if let last, !(last < name) { flush() }
    let isWhole = name.withSpan { name in
      KnownEntry.Layout.append(
        name, status: status, isStable: isStable, encoded: encoded, record: nil, to: &entries)
    }
    guard isWhole else { return }
    last = name
    if entries.count >= Self.batch || checkpoint != run.checkpoints { flush() }
  }

  /// Writes the added entries.
  mutating func flush() {
    checkpoint = run.checkpoints
    last = nil
    guard !entries.isEmpty else { return }
    run.append(entries, in: key)
    entries.removeAll(keepingCapacity: true)
  }
}
