package import ArchiveStore
internal import Codecs
package import SystemIO

/// Creates all new and replacing entries in the staging directory: first directories and entries
/// without content, then the contents by several threads in the order of the packs, then hard
/// links, and last the directories' metadata, deepest first.
package struct StagingWriter: ~Copyable {
  let run: RestoreRun
  let reader: RepositoryReader
  private let threads: Int
  private let isStopping: @Sendable () -> Bool
  var cursor: TreeCursor
  /// Files that are written step by step.
  var filled: [Int] = []

  package init(
    _ run: RestoreRun, _ reader: RepositoryReader, threads: Int,
    isStopping: @escaping @Sendable () -> Bool
  ) throws(SystemError) {
    self.run = run
    self.reader = reader
    self.threads = threads
    self.isStopping = isStopping
    cursor = try run.cursor()
  }

  /// Creates all entries.
  package mutating func write() throws {
    try makeEntries()
    try writeContents()
    try finishFiles()
    try makeLinks()
    finishDirectories()
  }

  func checkStop() throws(OperationError) {
    if isStopping() {
      throw OperationError(.interrupted, "interrupted: the target is unchanged")
    }
  }

  // MARK: - Contents

  /// The number of blob uses that are sorted together, in about 30 MB. If a snapshot has more, a
  /// frame is decoded once for each window that needs it.
  private static let window = 1 << 18

  private mutating func writeContents() throws {
    var uses: [BlobDelivery.Use] = []
    let early = earlySync()
    for number in run.tree.entries.indices where hasContent(number) {
      do {
        try gather(number, into: &uses, early: early)
      } catch let error as StoreError where error.kind == .damaged {
        run.findings.lose(number, error.reason)
      }
    }
    try deliver(uses, early)
    try early?.finish()
  }

  /// Returns nil if there is little data, which reaches the disk soon anyway, or if no thread can
  /// be started.
  private func earlySync() -> EarlySync? {
    let run = run
    var bytes: UInt64 = 0
    for number in run.tree.entries.indices where hasContent(number) {
      // Sizes are capped, because the sum of false ones may overflow.
      bytes += min(run.tree.entries[number].size, UInt64(EarlySync.portion))
    }
    guard bytes >= EarlySync.portion else { return nil }
    return try? EarlySync { () throws(SystemError) in try run.syncEarly() }
  }

  private func hasContent(_ number: Int) -> Bool {
    let entry = run.tree.entries[number]
    return entry.kind == .file && entry.action.isWritten && entry.pieceCount > 0
      && !run.findings.isUnmade(number)
  }

  private func gather(
    _ number: Int, into uses: inout [BlobDelivery.Use], early: EarlySync?
  ) throws {
    let entry = run.tree.entries[number]
    try reader.forEachPiece(run.tree.pieces(number), level: entry.level) { offset, piece in
      guard case .blob(let digest, let length) = piece else {
        return run.counters.didHandle(bytes: piece.length)
      }
      uses.append(
        BlobDelivery.Use(
          digest: digest, length: UInt32(clamping: length), item: UInt32(number), offset: offset))
      if uses.count < Self.window { return }
      try deliver(uses, early)
      uses.removeAll(keepingCapacity: true)
    }
  }

  private func deliver(_ uses: [BlobDelivery.Use], _ early: EarlySync?) throws {
    if uses.isEmpty { return }
    let run = run
    try reader.deliver(uses, threads: threads, isStopping: isStopping) {
      try StagedFileSink(run, early)
    }
    try checkStop()
    let missing = run.findings.takeMissing()
    if !missing.isEmpty { try deliverMissing(missing) }
  }

  /// Looks up blobs again that were not at their recorded location: another process may have moved
  /// them, or another pack may have them. A file with a missing blob is damaged.
  private func deliverMissing(_ uses: [BlobDelivery.Use]) throws {
    let sink = try StagedFileSink(run)
    for use in uses where !run.findings.isUnmade(Int(use.item)) {
      try checkStop()
      guard let bytes = try find(use) else { continue }
      guard bytes.count == Int(use.length) else {
        run.findings.lose(
          Int(use.item), "it needs \(use.length) bytes of a blob that has \(bytes.count)")
        continue
      }
      try sink.take([BlobDelivery.Blob(use: use, range: 0..<bytes.count)], of: bytes)
    }
  }

  private func find(_ use: BlobDelivery.Use) throws(StoreError) -> [UInt8]? {
    do {
      return try reader.readBlob(BlobID(kind: .data, digest: use.digest))
    } catch {
      guard error.kind == .damaged else { throw error }
      run.findings.lose(Int(use.item), error.reason)
      return nil
    }
  }
}
