package import ArchiveStore
internal import Codecs
package import SystemIO

/// Creates all new and replacing entries in the staging directory: first directories and entries
/// without content, while the first contents are fetched, then the contents by several threads in
/// the order of the packs, then hard links, and last the directories' metadata, deepest first.
package struct StagingWriter: ~Copyable {
  let run: RestoreRun
  let reader: RepositoryReader
  private let threads: Int
  private let isStopping: @Sendable () -> Bool
  private let regions = FileRegions()
  var cursor: RestoreRun.Cursor
  private var hasEntries = false
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
    try writeContents()
    try finishFiles()
    try makeLinks()
    finishDirectories()
  }

  func checkStop() throws(OperationError) {
    if isStopping() {
      throw OperationError(.interrupted, "the restore was interrupted: the target is unchanged")
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
        run.findings.addLost(number, error.reason, needsOlderKey: error.needsOlderKey)
      }
    }
    uses += run.values.uses(of: run.tree, where: { needsValues($0) })
    try deliver(uses, early)
    try makeEntriesOnce()
    try early?.finish()
  }

  /// Whether the attributes of an entry are set after the contents of files are written.
  private func needsValues(_ number: Int) -> Bool {
    let entry = run.tree.entries[number]
    let isSetLater =
      entry.kind == .directory
      || entry.kind == .file && run.tree.leader(number) == nil
        && run.tree.detail(number).generated == nil
    return isSetLater && entry.action.isWritten && entry.hasMetadata
      && !run.findings.isUnmade(number)
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

  private mutating func gather(
    _ number: Int, into uses: inout [BlobDelivery.Use], early: EarlySync?
  ) throws {
    let entry = run.tree.entries[number]
    let isCounted = early != nil && entry.size >= FileRegions.minimumFile && !run.isSimple(number)
    try reader.forEachPiece(run.tree.pieces(number), level: entry.level) { offset, piece in
      guard case .blob(let digest, let length) = piece else {
        return run.counters.didHandle(bytes: piece.length)
      }
      if isCounted { regions.expect(offset..<(offset + length), of: number) }
      uses.append(
        BlobDelivery.Use(
          digest: digest, length: UInt32(clamping: length), item: UInt32(number), offset: offset))
      if uses.count < Self.window { return }
      try deliver(uses, early)
      uses.removeAll(keepingCapacity: true)
    }
  }

  /// Writes contents. The entries are made while the first of them are fetched from another host.
  private mutating func deliver(_ uses: [BlobDelivery.Use], _ early: EarlySync?) throws {
    if uses.isEmpty { return }
    let delivery = try reader.prepare(uses)
    try makeEntriesOnce()
    let (run, regions) = (run, regions)
    try delivery.run(threads: threads, isStopping: isStopping) {
      try StagedFileWriter(run, early, regions: regions)
    }
    try checkStop()
    let missing = run.findings.removeMissing()
    if !missing.isEmpty { try deliverMissing(missing) }
  }

  /// Looks up again blobs that were not at their recorded location: another process may have moved
  /// them, or another pack may have them. A file with a missing blob is damaged.
  private func deliverMissing(_ uses: [BlobDelivery.Use]) throws {
    let writer = try StagedFileWriter(run)
    for use in uses where !run.findings.isUnmade(Int(use.item)) {
      try checkStop()
      guard let bytes = try find(use) else { continue }
      guard bytes.count == Int(use.length) else {
        addLost(use, "it needs \(use.length) bytes of a blob that has \(bytes.count)")
        continue
      }
      try writer.receive([BlobDelivery.Blob(use: use, range: 0..<bytes.count)], of: bytes)
    }
  }

  private func find(_ use: BlobDelivery.Use) throws(StoreError) -> [UInt8]? {
    do {
      return try reader.readBlob(BlobID(kind: .data, digest: use.digest))
    } catch {
      guard error.kind == .damaged else { throw error }
      addLost(use, error.reason, needsOlderKey: error.needsOlderKey)
      return nil
    }
  }

  private func addLost(_ use: BlobDelivery.Use, _ reason: String, needsOlderKey: Bool = false) {
    if use.item == run.values.item { return }
    run.findings.addLost(Int(use.item), reason, needsOlderKey: needsOlderKey)
  }
}

extension StagingWriter {
  /// Creates entries without content, and directories, which have full access until they are
  /// finished, unless that was done.
  mutating func makeEntriesOnce() throws {
    if hasEntries { return }
    hasEntries = true
    let needed = run.tree.directoriesWithWork()
    var number = 1
    while number < run.tree.entries.count {
      try checkStop()
      let entry = run.tree.entries[number]
      let isWanted = entry.kind == .directory ? needed[number] : entry.action.isWritten
      guard isWanted else {
        number = entry.kind == .directory ? run.tree.end(of: number) : number + 1
        continue
      }
      do throws(SystemError) {
        try make(number)
        number += 1
      } catch {
        try run.record(number, error)
        run.skip(below: number)
        number = run.tree.end(of: number)
      }
    }
  }

  private mutating func make(_ number: Int) throws(SystemError) {
    let entry = run.tree.entries[number]
    let (name, detail) = (run.tree.name(number), run.tree.detail(number))
    if detail.leader != nil { return }
    switch entry.kind {
    case .directory:
      try cursor.withDirectory(of: number) { directory throws(SystemError) in
        try directory.createDirectory(name, permissions: 0o700)
      }
    case .file:
      if let bytes = detail.generated { return try makeFile(number, bytes) }
      if !run.isSimple(number) { try makeFile(number) }
    case .symlink, .fifo, .socket, .characterDevice, .blockDevice:
      let metadata = metadata(number)
      try cursor.withDirectory(of: number) { directory throws(SystemError) in
        if entry.kind == .symlink {
          try directory.createLink(name, to: detail.linkTarget)
        } else {
          try directory.createSpecial(
            name, kind: entry.kind, permissions: 0o600, device: detail.device)
        }
        metadata.set(onChild: name, of: directory)
      }
    }
  }

  /// Creates a file without data, which its blobs are written to later.
  private mutating func makeFile(_ number: Int) throws(SystemError) {
    let entry = run.tree.entries[number]
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      let file = try run.createFile(number, in: directory, permissions: 0o600)
      if entry.size > 0 { try file.truncate(to: entry.size) }
      try file.close()
    }
    filled.append(number)
  }

  /// Creates a file with known content.
  private mutating func makeFile(_ number: Int, _ bytes: [UInt8]) throws(SystemError) {
    let metadata = metadata(number)
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      let file = try run.createFile(number, in: directory, permissions: 0o600)
      try file.write(bytes)
      metadata.set(on: file)
      try file.close()
    }
  }

  /// Sets the metadata of the files that were written step by step, and removes incomplete files.
  mutating func finishFiles() throws {
    for number in filled {
      try checkStop()
      run.counters.didHandle(files: 1)
      let (name, isLost) = (run.tree.name(number), run.findings.isUnmade(number))
      let metadata = metadata(number)
      do throws(SystemError) {
        try cursor.withDirectory(of: number) { directory throws(SystemError) in
          if isLost { return try directory.remove(name) }
          let file = try directory.fileForWriting(name)
          if run.syncsEachFile, metadata.entry.size >= UInt64(StagedFileWriter.minimumLarge) {
            try file.sync()
          }
          metadata.set(on: file)
        }
      } catch {
        try run.record(number, error)
      }
    }
  }

  /// Creates hard links.
  mutating func makeLinks() throws {
    var staged = try run.cursor()
    var target = try run.targetCursor()
    for number in run.tree.entries.indices {
      guard let leader = run.tree.leader(number), run.tree.entries[number].action.isWritten,
        !run.findings.isUnmade(number)
      else { continue }
      if run.findings.isUnmade(leader) {
        run.findings.addLostLink(leader, number)
        continue
      }
      do throws(SystemError) {
        if run.tree.entries[leader].action.isWritten {
          try link(number, to: leader, &staged)
        } else {
          try link(number, to: leader, &target)
        }
      } catch {
        try run.record(number, error)
      }
    }
  }

  private mutating func link(
    _ number: Int, to leader: Int, _ leaderCursor: inout RestoreRun.Cursor
  ) throws(SystemError) {
    let (name, existing) = (run.tree.name(number), run.tree.name(leader))
    try cursor.withDirectory(of: number) { directory throws(SystemError) in
      try leaderCursor.withDirectory(of: leader) { other throws(SystemError) in
        try directory.createHardLink(name, to: existing, in: other)
      }
    }
  }

  /// Sets the metadata of new directories, deepest first, because a new child changes its
  /// directory's time.
  mutating func finishDirectories() {
    for number in run.tree.entries.indices.reversed() {
      let entry = run.tree.entries[number]
      guard entry.kind == .directory, entry.action.isWritten, !entry.isMerged, entry.hasMetadata,
        !run.findings.isUnmade(number)
      else { continue }
      let metadata = metadata(number)
      do throws(SystemError) {
        try cursor.within(number) { directory throws(SystemError) in
          metadata.set(on: directory)
          if run.tree.detail(number).flags != 0 { run.didCreate(number, try directory.status()) }
        }
      } catch {
        run.findings.remark(number, error.reason)
      }
    }
  }

  /// Returns the metadata of an entry, with the values of its attributes.
  func metadata(_ number: Int) -> EntryMetadata {
    EntryMetadata(
      number: number, entry: run.tree.entries[number],
      attributes: reader.attributes(
        of: run.tree.detail(number), entry: number, findings: run.findings, held: run.values),
      findings: run.findings)
  }
}

extension RepositoryReader {
  /// Returns an entry's attributes with their values; a damaged value is recorded.
  ///
  /// - Parameter held: values that need not be read.
  func attributes(
    of detail: PlannedTree.Detail, entry number: Int, findings: RestoreFindings,
    held: AttributeValues? = nil
  ) -> [(name: ByteString, value: [UInt8])] {
    detail.attributes.compactMap { attribute in
      if let value = held?.value(of: attribute) { return (attribute.name, value) }
      do throws(StoreError) {
        return (attribute.name, try value(of: attribute))
      } catch {
        let reason = "attribute \(attribute.name): \(error.reason)"
        if error.kind == .damaged {
          findings.addLostPart(number, reason, needsOlderKey: error.needsOlderKey)
        } else {
          findings.remark(number, reason)
        }
        return nil
      }
    }
  }
}
