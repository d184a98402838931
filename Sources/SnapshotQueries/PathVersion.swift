package import ArchiveStore
package import Codecs
package import SystemIO

/// One version of a path.
package struct PathVersion: Sendable, Hashable {
  /// The logical path.
  package let path: ByteString
  /// The entry at the path.
  package let entry: TreeEntry
  /// The snapshots with exactly this version, in the given order.
  package fileprivate(set) var snapshots: [StoredSnapshot]
}

/// The versions of a path over a list of snapshots.
package struct PathHistory: Sendable {
  /// Each distinct version, in order of first appearance.
  package private(set) var versions: [PathVersion] = []
  /// The snapshots in which a directory above the path is damaged.
  package private(set) var damaged: [(snapshot: StoredSnapshot, error: StoreError)] = []

  /// Looks up a path in snapshots. Those for which `path` returns nil are skipped, and snapshots
  /// with the same tree are read once.
  package init(
    of path: (Snapshot) throws -> ByteString?, in snapshots: [StoredSnapshot],
    from reader: RepositoryReader
  ) throws {
    var known: [Location: TreeEntry?] = [:]
    var places: [Form: Int] = [:]
    reader.watch?.counters.expect(files: snapshots.count, bytes: 0)
    for stored in snapshots {
      try reader.watch?.checkCancellation()
      defer { reader.watch?.counters.didHandle(files: 1) }
      guard let path = try path(stored.snapshot) else { continue }
      let place = Location(tree: stored.snapshot.tree, path: path)
      do {
        let entry = try known[place] ?? reader.entry(at: place.path, in: place.tree)
        known[place] = entry
        guard let entry else { continue }
        add(Form(path: path, entry: entry), in: stored, to: &places)
      } catch let error as StoreError where error.kind == .damaged {
        reader.watch?.counters.didFail()
        damaged.append((stored, error))
      }
    }
  }

  private struct Location: Hashable {
    let tree: TreeReference
    let path: ByteString
  }

  private struct Form: Hashable {
    let path: ByteString
    let entry: TreeEntry
  }

  private mutating func add(
    _ form: Form, in stored: StoredSnapshot, to places: inout [Form: Int]
  ) {
    if let place = places[form] {
      versions[place].snapshots.append(stored)
    } else {
      places[form] = versions.count
      versions.append(PathVersion(path: form.path, entry: form.entry, snapshots: [stored]))
    }
  }
}

extension TreeEntry {
  /// The identity of the content: the hash of a file's only blob, or of the list of its pieces; the
  /// digest of a directory's tree; the hash of a link's target. Nil for an entry without content.
  package var contentID: Digest? {
    switch node {
    case .file(let content): content.identity
    case .directory(let tree): tree.digest
    case .symlink(let target): Blake2b.hash(Array(target.bytes))
    case .fifo, .socket, .characterDevice, .blockDevice: nil
    }
  }
}

extension Content {
  fileprivate var identity: Digest {
    if level == 0, pieces.count == 1, case .blob(let digest, _) = pieces[0] { return digest }
    var hash = Blake2b()
    hash.update([level])
    for piece in pieces {
      switch piece {
      case .blob(let digest, let length):
        hash.update(Array("blob \(length) ".utf8) + digest.bytes)
      case .hole(let length): hash.update(Array("hole \(length) ".utf8))
      }
    }
    return hash.finish()
  }
}
