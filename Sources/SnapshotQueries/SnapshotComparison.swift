package import ArchiveStore
package import SystemIO

/// A comparison of two snapshots, or of one path in both.
///
/// Entries below a directory that only one snapshot has are reported as well. A directory with the
/// same tree in both is not read, so the time depends on the differences. The bytes of files are
/// read only if the hashes do not show whether they are the same. An entry that may be lost in one
/// snapshot is not reported, since it would appear as added or removed.
package struct SnapshotComparison {
  private let reader: RepositoryReader
  private let path: ByteString
  private let before: SnapshotSource?
  private let after: SnapshotSource?

  /// Finds the entries to compare.
  ///
  /// - Throws: `OperationError` of the kind `notFound` if neither snapshot has the path;
  ///   `StoreError`.
  package init(
    _ before: StoredSnapshot, _ after: StoredSnapshot, path: ByteString,
    from reader: RepositoryReader
  ) throws {
    self.reader = reader
    self.path = path
    self.before = try Self.find(path, in: before, reader)
    self.after = try Self.find(path, in: after, reader)
    if self.before == nil, self.after == nil { _ = try reader.source(path, in: after) }
  }

  private static func find(
    _ path: ByteString, in snapshot: StoredSnapshot, _ reader: RepositoryReader
  ) throws -> SnapshotSource? {
    do {
      return try reader.source(path, in: snapshot)
    } catch let error as OperationError where error.kind == .notFound {
      return nil
    }
  }

  /// A finding of a comparison.
  package enum Finding: Sendable {
    case difference(SnapshotDifference)
    /// The directory at a path, or a part of its entries, cannot be read and is not compared.
    case damage(ByteString, StoreError)
  }

  /// Reports the differences in path order, a directory before its content.
  package func run(_ body: (Finding) throws -> Void) throws {
    if let difference = try difference(at: path, before?.entry, after?.entry) {
      try body(.difference(difference))
    }
    let trees = [before?.tree, after?.tree].compactMap { $0 }
    let first = before?.tree.map { _ in 0 }
    let second = after?.tree.map { _ in trees.count - 1 }
    try reader.walkTogether(trees, differencesOnly: trees.count > 1) { below, found in
      let path = path.appending(below)
      switch found {
      case .damage(let error, _): try body(.damage(path, error))
      case .entries(_, let unknown) where !unknown.isEmpty: return .skip
      case .entries(let entries, _):
        let (before, after) = (entries.of(tree: first), entries.of(tree: second))
        if let difference = try difference(at: path, before, after) {
          try body(.difference(difference))
        }
      }
      return .enter
    }
  }

  /// Returns the difference between two entries, or nil if they are equal apart from the trees of
  /// directories.
  private func difference(
    at path: ByteString, _ before: TreeEntry?, _ after: TreeEntry?
  ) throws -> SnapshotDifference? {
    if before == nil, after == nil { return nil }
    let difference = SnapshotDifference(
      path: path, before: before, after: after, bytes: try bytes(before, after))
    return difference.kind == .metadata && difference.aspects.isEmpty ? nil : difference
  }

  private func bytes(
    _ before: TreeEntry?, _ after: TreeEntry?
  ) throws -> ContentComparison.Outcome {
    guard case .file(let first)? = before?.node, case .file(let second)? = after?.node else {
      return .different
    }
    return try ContentComparison.compare(first, second, from: reader)
  }
}

extension [JointWalk.Entry] {
  /// Returns the entry of a tree, or nil if it has none.
  fileprivate func of(tree: Int?) -> TreeEntry? {
    guard let tree else { return nil }
    return first { $0.trees.contains(tree) }?.entry
  }
}

extension SnapshotSource {
  /// The entry; nil for a snapshot's root.
  var entry: TreeEntry? {
    switch self {
    case .directory(_, let entry): entry
    case .single(let entry): entry
    }
  }

  /// The tree; nil if the source is not a directory.
  var tree: TreeReference? {
    if case .directory(let tree, _) = self { tree } else { nil }
  }
}
