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
  package fileprivate(set) var snapshots: [SnapshotHead]
}

/// The versions of a path over a list of snapshots.
package struct PathHistory: Sendable {
  /// Each distinct version, in order of first appearance.
  package private(set) var versions: [PathVersion] = []
  /// The snapshots in which a directory above the path is damaged.
  package private(set) var damaged: [(snapshot: SnapshotHead, error: StoreError)] = []

  /// Looks up a path in snapshots. Those for which `path` returns nil are skipped, and each
  /// distinct directory above the path is read once.
  package init(
    of path: (SnapshotHead) throws -> ByteString?, in snapshots: [SnapshotHead],
    from reader: RepositoryReader
  ) throws {
    var lookup = Lookup(reader)
    var indexes: [Form: Int] = [:]
    reader.watch?.counters.expect(files: snapshots.count, bytes: 0)
    for head in snapshots {
      try reader.watch?.checkCancellation()
      defer { reader.watch?.counters.didHandle(files: 1) }
      guard let path = try path(head) else { continue }
      do throws(StoreError) {
        guard let entry = try lookup.entry(at: path.components[...], in: head.tree) else {
          continue
        }
        add(Form(path: path, entry: entry), in: head, to: &indexes)
      } catch {
        guard error.kind == .damaged else { throw error }
        reader.watch?.counters.didFail()
        damaged.append((head, error))
      }
    }
  }

  /// Finds entries in trees, and keeps the result for each directory on the way.
  private struct Lookup {
    private let reader: RepositoryReader
    private var known: [TreePath: TreeEntry?] = [:]

    private struct TreePath: Hashable {
      let tree: TreeReference
      let path: ArraySlice<ByteString>
    }

    init(_ reader: RepositoryReader) { self.reader = reader }

    mutating func entry(
      at path: ArraySlice<ByteString>, in tree: TreeReference
    ) throws(StoreError) -> TreeEntry? {
      guard let name = path.first else { return nil }
      let treePath = TreePath(tree: tree, path: path)
      if let entry = known[treePath] { return entry }
      var found = try reader.entry(at: name, in: tree)
      let rest = path.dropFirst()
      if !rest.isEmpty {
        if case .directory(let below)? = found?.node {
          found = try entry(at: rest, in: below)
        } else {
          found = nil
        }
      }
      known[treePath] = .some(found)
      return found
    }
  }

  private struct Form: Hashable {
    let path: ByteString
    let entry: TreeEntry
  }

  private mutating func add(
    _ form: Form, in head: SnapshotHead, to indexes: inout [Form: Int]
  ) {
    if let index = indexes[form] {
      versions[index].snapshots.append(head)
    } else {
      indexes[form] = versions.count
      versions.append(PathVersion(path: form.path, entry: form.entry, snapshots: [head]))
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
