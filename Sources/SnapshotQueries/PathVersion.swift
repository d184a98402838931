package import ArchiveStore
package import Codecs
package import SystemIO

/// One version of a path.
package struct PathVersion: Sendable, Hashable {
  /// The logical path.
  package let path: ByteString
  /// The entry at the path.
  package let entry: TreeEntry
  /// The identity of the content: the hash of a file's only blob, or of the list of its pieces; the
  /// digest of a directory's tree; the hash of a link's target. Nil for an entry without content.
  /// It is that of the previous version if both files have the same bytes in different pieces.
  package fileprivate(set) var contentID: Digest?
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
  /// distinct directory above the path is read once, together with the others at the same depth.
  package init(
    of path: (SnapshotHead) throws -> ByteString?, in snapshots: [SnapshotHead],
    from reader: RepositoryReader
  ) throws {
    reader.watch?.counters.expect(files: snapshots.count, bytes: 0)
    let paths = try snapshots.map(path)
    var search = Search(reader)
    var indexes: [Form: Int] = [:]
    let together = reader.readsFromAnotherHost ? Search.together : 1
    for start in stride(from: 0, to: snapshots.count, by: together) {
      let part = start..<min(start + together, snapshots.count)
      let results = try search.run(
        part.map { (paths[$0]?.components[...] ?? [], snapshots[$0].tree) })
      for (number, result) in zip(part, results) {
        switch result {
        case .success(let entry):
          guard let path = paths[number], let entry else { continue }
          add(Form(path: path, entry: entry), in: snapshots[number], to: &indexes)
        case .failure(let error):
          reader.watch?.counters.didFail()
          damaged.append((snapshots[number], error))
        }
      }
    }
    try shareContentIDs(from: reader)
  }

  /// Assigns the same id to successive versions with the same bytes in different pieces, such as
  /// those of a file that was copied with different holes.
  private mutating func shareContentIDs(from reader: RepositoryReader) throws {
    for (number, version) in versions.enumerated().dropFirst() {
      let last = versions[number - 1]
      guard last.contentID != version.contentID, case .file(let first) = last.entry.node,
        case .file(let second) = version.entry.node,
        try ContentComparison.compare(first, second, from: reader) != .different
      else { continue }
      versions[number].contentID = last.contentID
    }
  }

  /// A search for entries in several trees. All advance by one name at a time, so that directories
  /// at the same depth can be fetched from another host at the same time.
  private struct Search {
    private let reader: RepositoryReader
    /// The steps that were looked up.
    private var known: [Step: Found] = [:]

    /// The number of trees that are searched together if they are on another host: their frames are
    /// held from one depth to the next.
    static let together = 64

    /// An entry, nil if there is none, or the damage on the path to it.
    typealias Found = Result<TreeEntry?, StoreError>

    /// A directory, and the path of an entry in it, which is not empty.
    private struct Step: Hashable {
      let tree: TreeReference
      let path: ArraySlice<ByteString>

      init(_ path: ArraySlice<ByteString>, in tree: TreeReference) {
        (self.tree, self.path) = (tree, path)
      }

      /// Returns the step below the directory that was found, or nil if the path ends there.
      func next(after found: Found) -> Step? {
        guard path.count > 1, case .success(let entry?) = found,
          case .directory(let below) = entry.node
        else { return nil }
        return Step(path.dropFirst(), in: below)
      }
    }

    init(_ reader: RepositoryReader) { self.reader = reader }

    /// Finds the entry at a path in each of some trees. There is none for an empty path.
    mutating func run(
      _ wanted: [(path: ArraySlice<ByteString>, tree: TreeReference)]
    ) throws -> [Found] {
      defer { reader.endExpecting() }
      var results = [Found](repeating: .success(nil), count: wanted.count)
      var pending = wanted.indices.map {
        (result: $0, step: Step(wanted[$0].path, in: wanted[$0].tree))
      }
      pending.removeAll { $0.step.path.isEmpty }
      reader.watch?.counters.didHandle(files: wanted.count - pending.count)
      while !pending.isEmpty {
        try lookUp(pending.map(\.step))
        var next: [(result: Int, step: Step)] = []
        for (result, step) in pending {
          guard let found = known[step] else { continue }
          if let below = step.next(after: found) {
            next.append((result, below))
          } else {
            // Only a directory has entries below it.
            results[result] = step.path.count > 1 ? found.map { _ in nil } : found
            reader.watch?.counters.didHandle(files: 1)
          }
        }
        pending = next
      }
      return results
    }

    /// Looks up the first name of each step that is not known yet.
    private mutating func lookUp(_ steps: [Step]) throws {
      var seen: Set<Step> = []
      let new = steps.filter { known[$0] == nil && seen.insert($0).inserted }
      reader.expect(new.map(\.tree))
      for step in new {
        try reader.watch?.checkCancellation()
        do throws(StoreError) {
          known[step] = .success(
            try step.path.first.flatMap { name throws(StoreError) in
              try reader.entry(at: name, in: step.tree)
            })
        } catch {
          guard error.kind == .damaged else { throw error }
          known[step] = .failure(error)
        }
      }
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
      versions.append(
        PathVersion(
          path: form.path, entry: form.entry, contentID: form.entry.contentID, snapshots: [head]))
    }
  }
}

extension TreeEntry {
  /// The identity of the content, determined from its pieces.
  fileprivate var contentID: Digest? {
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
