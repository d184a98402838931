internal import ArchiveStore
internal import SystemIO

/// Writes blobs to files in the staging directory. Each thread has its own writer.
final class StagedFileWriter: BlobDelivery.Sink {
  /// A large piece of a file that was written in one call and is being flushed to disk.
  ///
  /// A large restore would fill the page cache and evict the user's working set, so a large piece
  /// is dropped from the cache once it is on disk, like the data that a backup stores
  /// (docs/design.md, "Backup and restore"). Each piece is awaited while the next one is being
  /// flushed, to keep both the disk and the threads busy.
  private final class LargePiece {
    private let file: Descriptor
    private let range: Range<UInt64>

    /// Starts the writeback of a piece. Returns nil if no descriptor is left to wait with; the
    /// piece is written nonetheless.
    init?(at range: Range<UInt64>, in file: borrowing Descriptor) throws(SystemError) {
      try file.beginSync(range)
      guard let second = try? file.duplicate() else { return nil }
      self.range = range
      self.file = second
    }

    /// Waits until the piece is on disk, and drops it from the page cache. Like all other data, it
    /// is durable only after the final sync of the volume.
    func finish() throws(SystemError) {
      try file.endSync(range)
      file.willNotBeReadSoon(range)
    }
  }

  /// The number of bytes from which a piece is large. Smaller pieces are flushed together
  /// (`EarlySync`, or with their region): starting their writeback one by one gained nothing.
  static let minimumLarge = 1 << 20

  private let run: RestoreRun
  private let early: EarlySync?
  private let regions: FileRegions?
  private var cursor: RestoreRun.Cursor
  /// The large piece that is being flushed to disk.
  private var large: LargePiece?
  /// The first error of flushing a piece.
  private var refusal: SystemError?

  init(
    _ run: RestoreRun, _ early: EarlySync? = nil, regions: FileRegions? = nil
  ) throws(SystemError) {
    (self.run, self.early, self.regions) = (run, early, regions)
    cursor = try run.cursor()
  }

  /// Waits for the last piece; the sync of the volume reports its errors.
  deinit { try? large?.finish() }

  func reportMissing(_ uses: [BlobDelivery.Use], _ error: StoreError) {
    // A damaged value is reported by those who need it; one that could not be read ends the
    // restore, as for content, unless there is another copy.
    run.findings.addMissing(
      error.isRefused ? uses : uses.filter { $0.item != run.values.item })
  }

  func receive(_ blobs: [BlobDelivery.Blob], of frame: [UInt8]) throws {
    var start = 0
    if let first = blobs.first, first.use.item != run.values.item {
      run.counters.begin(run.tree.path(Int(first.use.item), from: 0))
    }
    while start < blobs.count {
      let number = Int(blobs[start].use.item)
      var end = start + 1
      while end < blobs.count, Int(blobs[end].use.item) == number { end += 1 }
      if blobs[start].use.item == run.values.item {
        run.values.hold(blobs[start..<end], of: frame)
      } else {
        try write(blobs[start..<end], of: frame, to: number)
      }
      start = end
    }
  }

  /// Writes the blobs of a frame that belong to one file.
  private func write(
    _ blobs: ArraySlice<BlobDelivery.Blob>, of frame: [UInt8], to number: Int
  ) throws(OperationError) {
    let missing = blobs.filter { $0.range == nil }
    run.findings.addMissing(missing.map(\.use))
    let blobs = missing.isEmpty ? blobs : blobs.filter { $0.range != nil }
    if blobs.isEmpty { return }
    run.counters.didHandle(bytes: blobs.reduce(0) { $0 + UInt64($1.use.length) })
    if run.isSimple(number) { run.counters.didHandle(files: 1) }
    if run.findings.isUnmade(number) { return }
    do throws(SystemError) {
      if run.isSimple(number) {
        try make(number, blobs, of: frame)
      } else {
        try fill(number, blobs, of: frame)
      }
    } catch {
      try run.record(number, error)
    }
    // As with a failed volume sync, other threads' data may be lost as well.
    if let refusal { throw OperationError(refusal) }
  }

  /// Creates a complete file that consists of one blob.
  private func make(
    _ number: Int, _ blobs: ArraySlice<BlobDelivery.Blob>, of frame: [UInt8]
  ) throws(SystemError) {
    let (entry, name) = (run.tree.entries[number], run.tree.name(number))
    let metadata = EntryMetadata(
      number: number, entry: entry, attributes: run.tree.inlineAttributes(number),
      findings: run.findings)
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      let file = try run.createFile(
        number, in: directory, permissions: metadata.initialPermissions)
      do throws(SystemError) {
        let end = try write(blobs, of: frame, to: file, number)
        if end < entry.size { try file.truncate(to: entry.size) }
        if run.syncsEachFile, entry.size >= UInt64(Self.minimumLarge) { try file.sync() }
        metadata.set(on: file, fresh: run.fresh)
        try file.close()
      } catch {
        try? directory.remove(name)
        throw error
      }
    }
  }

  /// Writes a part of an existing file.
  private func fill(
    _ number: Int, _ blobs: ArraySlice<BlobDelivery.Blob>, of frame: [UInt8]
  ) throws(SystemError) {
    let name = run.tree.name(number)
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      let file = try directory.fileForWriting(name)
      _ = try write(blobs, of: frame, to: file, number)
      try file.close()
    }
  }

  /// Writes blobs at their offsets, adjacent ones in one call. Returns the end of the last one.
  private func write(
    _ blobs: ArraySlice<BlobDelivery.Blob>, of frame: [UInt8], to file: borrowing Descriptor,
    _ number: Int
  ) throws(SystemError) -> UInt64 {
    var pending: (range: Range<Int>, offset: UInt64) = (0..<0, 0)
    for blob in blobs {
      guard let range = blob.range else { continue }
      let end = pending.offset + UInt64(pending.range.count)
      if range.lowerBound == pending.range.upperBound, blob.use.offset == end {
        pending.range = pending.range.lowerBound..<range.upperBound
      } else {
        try write(pending.range, of: frame, at: pending.offset, to: file, number)
        pending = (range, blob.use.offset)
      }
    }
    try write(pending.range, of: frame, at: pending.offset, to: file, number)
    return pending.offset + UInt64(pending.range.count)
  }

  private func write(
    _ range: Range<Int>, of frame: [UInt8], at offset: UInt64, to file: borrowing Descriptor,
    _ number: Int
  ) throws(SystemError) {
    if range.isEmpty { return }
    try file.write(frame.span.extracting(range), at: offset)
    let written = offset..<(offset + UInt64(range.count))
    let progress = regions?.didWrite(written, of: number) ?? .unknown
    if case .complete(let regions) = progress {
      try flush(regions, of: file)
    } else if range.count >= Self.minimumLarge {
      try flush(written, of: file)
    } else if progress == .unknown {
      early?.record(range.count)
    }
  }

  /// Starts the writeback of a range, and waits for that of the range before it.
  private func flush(
    _ range: Range<UInt64>, of file: borrowing Descriptor
  ) throws(SystemError) {
    let before = large
    large = try LargePiece(at: range, in: file)
    do throws(SystemError) { try before?.finish() } catch { refusal = refusal ?? error }
  }
}
