internal import Codecs
internal import SystemIO

/// The entries of an archive of a snap under their logical paths.
struct SnapArchiveSource: ~Copyable {
  private var source: ArchiveSource
  private let archive: SnapArchive
  private let snap: SnapMetadata
  /// The name of the archive for messages.
  private let label: ByteString
  private var recorded = SkippedEntries()
  private var isEnded = false

  /// Opens a checked copy of an archive.
  ///
  /// - Throws: `unknownFormat` or `damaged` if it is not an archive.
  init(
    _ copy: consuming SpooledMember, _ archive: SnapArchive, of snap: SnapMetadata,
    stopping: @escaping () -> Bool
  ) throws(InterchangeError) {
    let file: ArchiveFile
    do throws(SystemError) {
      file = try ArchiveFile(try copy.file.duplicate(), name: archive.member)
    } catch { throw InterchangeError(error, SnapSource.action, subject: archive.member) }
    file.isStopping = stopping
    source = try ArchiveSource(file)
    label = snap.name.appending(archive.member)
    self.archive = archive
    self.snap = snap
  }

  /// The names of the owners of the entries so far.
  var owners: OwnerNames { source.owners }

  /// The entries that were not imported so far, with the name of the archive before their paths.
  var skipped: SkippedEntries {
    var all = recorded
    all.append(source.skipped, below: label)
    return all
  }

  /// Returns the next entry, or nil after the last one, or after damage, which is recorded.
  mutating func next() throws(InterchangeError) -> ForeignEntry? {
    while !isEnded {
      do throws(InterchangeError) {
        guard let entry = try source.next() else { break }
        if let mapped = mapped(entry) { return mapped }
      } catch {
        try end(after: error)
      }
    }
    isEnded = true
    return nil
  }

  mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    do throws(InterchangeError) { return try source.read(into: buffer) } catch {
      throw try asEntry(error)
    }
  }

  mutating func skipHole() throws(InterchangeError) -> UInt64 {
    do throws(InterchangeError) { return try source.skipHole() } catch { throw try asEntry(error) }
  }

  /// Records that the rest of the archive cannot be read. The other archives still can.
  private mutating func end(after error: InterchangeError) throws(InterchangeError) {
    guard error.keepsEarlierEntries || error.kind == .unknownFormat else { throw error }
    isEnded = true
    recorded.append(
      path: label,
      reason: error.isSuspect
        ? "any of its files may be wrong: \(error.reason)"
        : "what follows is damaged: \(error.reason)")
  }

  /// Returns the error for the current file, after recording damage to the rest.
  private mutating func asEntry(
    _ error: InterchangeError
  ) throws(InterchangeError) -> InterchangeError {
    if error.kind == .damagedEntry { return error }
    try end(after: error)
    return InterchangeError(
      .damagedEntry, SnapSource.action, subject: label, reason: error.reason)
  }

  private mutating func mapped(_ entry: ForeignEntry) -> ForeignEntry? {
    var mapped = entry
    guard let path = SnapPath.logicalPath(of: entry.path, in: archive, snap) else {
      if !entry.path.isEmpty {
        recorded.append(
          path: label.appending(entry.joinedPath),
          reason: "it is neither in 'common' nor in '\(snap.revision)'")
      }
      return nil
    }
    mapped.path = path
    if let fault = PathComponents.fault(in: path) {
      recorded.append(path: label.appending(entry.joinedPath), reason: fault)
      return nil
    }
    guard case .hardLink(let target) = entry.kind else { return mapped }
    // A target elsewhere is not in the archive, which the import reports.
    mapped.kind = .hardLink(
      to: SnapPath.logicalPath(of: target, in: archive, snap) ?? target)
    return mapped
  }
}
