internal import Codecs
public import SystemIO

/// The entry that a path in a snapshot names.
public enum SnapshotSource: Sendable {
  /// A directory's tree and its entry; the snapshot's root has no entry.
  case directory(TreeReference, TreeEntry?)
  /// An entry other than a directory.
  case single(TreeEntry)
}

extension RepositoryReader {
  /// Returns the entry at a logical path of a snapshot; the empty path is its root.
  ///
  /// - Throws: `OperationError` of the kind `notFound` if there is no such path; `StoreError`.
  public func source(
    _ path: ByteString, in snapshot: StoredSnapshot
  ) throws -> SnapshotSource {
    if path.isEmpty { return .directory(snapshot.snapshot.tree, nil) }
    guard let entry = try entry(at: path, in: snapshot.snapshot.tree) else {
      let id = String(snapshot.id.hex.prefix(8))
      throw OperationError(
        .notFound, "find", subject: path, reason: "snapshot \(id) has no such path",
        hint: "'sandboxctl ls \(id) --recursive' lists its paths")
    }
    if case .directory(let tree) = entry.node { return .directory(tree, entry) }
    return .single(entry)
  }
}
