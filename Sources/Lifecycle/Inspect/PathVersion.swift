public import ArchiveStore
public import Codecs
public import SystemIO

/// One of the forms that a path has had.
public struct PathVersion: Sendable, Hashable {
  /// The logical path.
  public let path: ByteString
  /// What stood there.
  public let entry: TreeEntry
  /// The snapshots that have it just so, in the order they were given in.
  public fileprivate(set) var snapshots: [StoredSnapshot]
}

/// The forms that a path has had over some snapshots.
public struct PathHistory: Sendable {
  /// Each distinct form, in the order in which they first appear.
  public private(set) var versions: [PathVersion] = []
  /// Snapshots in which the way to the path is damaged.
  public private(set) var damaged: [(snapshot: StoredSnapshot, error: StoreError)] = []

  /// Looks a path up in snapshots, in those for which it is a logical path; those of the same tree
  /// are looked at once.
  public init(
    of path: (Snapshot) throws -> ByteString?, in snapshots: [StoredSnapshot],
    from reader: RepositoryReader
  ) throws {
    var known: [Location: TreeEntry?] = [:]
    var places: [Form: Int] = [:]
    reader.watch?.counters.expect(files: snapshots.count, bytes: 0)
    for stored in snapshots {
      try reader.watch?.goOn()
      defer { reader.watch?.counters.didHandle(files: 1) }
      guard let path = try path(stored.snapshot) else { continue }
      let place = Location(tree: stored.snapshot.tree, path: path)
      do {
        let entry = try known[place] ?? reader.entry(at: place.path, in: place.tree)
        known[place] = entry
        guard let entry else { continue }
        add(Form(path: path, entry: entry), stored, &places)
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
    _ form: Form, _ stored: StoredSnapshot, _ places: inout [Form: Int]
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
  /// What tells this content from any other: the hash of a file's only blob, or of the hashes of its
  /// pieces; a directory's tree; a link's target, hashed. Nothing for what has no content.
  public var contentID: Digest? {
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
