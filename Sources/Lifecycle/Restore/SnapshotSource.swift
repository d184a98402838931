public import ArchiveStore
internal import Codecs
public import SystemIO

/// What a path in a snapshot names.
public enum SnapshotSource: Sendable {
  /// A directory's tree, and its entry; the snapshot's root has none.
  case folder(TreeReference, TreeEntry?)
  /// An entry that is no directory.
  case single(TreeEntry)
}

extension RepositoryReader {
  /// Finds a logical path in a snapshot; the empty path is its root.
  ///
  /// - Throws: `LifecycleError` of the kind `notFound` when there is no such path; `StoreError`.
  public func source(
    _ path: ByteString, in snapshot: StoredSnapshot
  ) throws -> SnapshotSource {
    if path.isEmpty { return .folder(snapshot.snapshot.tree, nil) }
    guard let entry = try entry(at: path, in: snapshot.snapshot.tree) else {
      let id = String(snapshot.id.hex.prefix(8))
      throw LifecycleError(
        .notFound, "cannot find '\(path)' in snapshot \(id): it has no such path",
        hint: "'sandboxctl ls \(id) --recursive' shows what it has")
    }
    if case .directory(let tree) = entry.node { return .folder(tree, entry) }
    return .single(entry)
  }
}
