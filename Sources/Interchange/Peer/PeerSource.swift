internal import Codecs
package import SystemIO

/// The entries of a snapshot of another backup program, from the archive that the program writes.
///
/// The end of the archive is the end of the snapshot only if the program ends with status 0.
/// Otherwise `next` throws an error, after which nothing is stored, whatever the archive looks
/// like: an archive that ends between two files cannot be distinguished from a complete one.
package struct PeerSource: ~Copyable, EntrySource {
  private let snapshot: PeerSnapshot
  private let stream: PeerStream
  private let list: PeerEntryList?
  private var archive: ArchiveSource
  /// The path above the archive's entries.
  private let root: [ByteString]
  /// The entry of the root, until it is returned.
  private var rootEntry: ForeignEntry?
  private var listSkipped = SkippedEntries()

  /// Starts the program.
  ///
  /// - Throws: `programFailed`, `wrongKey`, `keyRequired` or `system` if it fails; `interrupted`.
  package init(
    _ snapshot: PeerSnapshot, of peer: Peer, isStopping: @escaping () -> Bool
  ) throws(InterchangeError) {
    let root = try snapshot.archiveRoot(of: peer)
    let stream = try PeerStream(snapshot, of: peer, isStopping: isStopping)
    let list = try PeerEntryList(snapshot, of: peer, isStopping: isStopping)
    let archive: ArchiveSource
    do throws(InterchangeError) {
      archive = try ArchiveSource(stream)
    } catch { throw stream.failure(after: error) }
    self.archive = archive
    (self.snapshot, self.root) = (snapshot, root)
    (self.stream, self.list) = (stream, list)
    rootEntry = snapshot.root.map {
      ForeignEntry(
        path: root, kind: .directory, permissions: $0.permissions, owner: $0.owner,
        group: $0.group, modified: $0.modified)
    }
  }

  package var skipped: SkippedEntries {
    var all = archive.skipped
    all.append(listSkipped)
    return all
  }

  package var madeAt: Timestamp? { snapshot.time }
  package var keepsNames: Bool { archive.keepsNames }
  package var owners: OwnerNames { archive.owners }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    if let entry = rootEntry.take() { return entry }
    do throws(InterchangeError) {
      while var entry = try archive.next() {
        let path = entry.joinedPath
        // The names in the list are ambiguous, but a special file is an empty file in the archive.
        if case .file(size: 0) = entry.kind, list?.isSpecialFile(path) == true { continue }
        if let time = list?.time(of: path) { entry.modified = time }
        place(&entry)
        return entry
      }
      try stream.requireSuccess()
      finishList()
      return nil
    } catch { throw stream.failure(after: error) }
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    do throws(InterchangeError) {
      return try archive.read(into: buffer)
    } catch { throw stream.failure(after: error) }
  }

  package mutating func skipHole() throws(InterchangeError) -> UInt64 {
    do throws(InterchangeError) {
      return try archive.skipHole()
    } catch { throw stream.failure(after: error) }
  }

  /// Puts an entry below the root, and the target of a hard link as well.
  private func place(_ entry: inout ForeignEntry) {
    if root.isEmpty { return }
    entry.path = root + entry.path
    if case .hardLink(let target) = entry.kind { entry.kind = .hardLink(to: root + target) }
  }

  private mutating func finishList() {
    guard let list else { return }
    list.finish()
    listSkipped = list.skipped
    guard let fault = list.fault else { return }
    // Only the list shows which entries the archive lacks.
    listSkipped.append(
      path: stream.name,
      reason: "what is omitted after some entry is not known, and times are in whole seconds: "
        + fault)
  }
}

extension PeerSnapshot {
  /// Returns the directory above the entries of the archive: for kopia, whose archives begin below
  /// it, the path that was backed up.
  fileprivate func archiveRoot(of peer: Peer) throws(InterchangeError) -> [ByteString] {
    guard peer.kind == .kopia, let path = paths.first else { return [] }
    do throws(PathFault) {
      return try PathComponents.parse(ByteString(path))
    } catch {
      throw InterchangeError(
        .programFailed, "read the snapshot", subject: peer.shownLocation,
        reason: "the path that was backed up cannot be used: \(error.reason)")
    }
  }
}
