public import ArchiveStore
public import SystemIO

/// Compares two snapshots, or what one path names in both.
///
/// What is below a directory that only one of them has is told, too. A directory of the same tree in both
/// is not read, so the time goes by what differs. Of a name that one of them may have lost nothing is
/// told: it would be called added or removed without being so.
public struct SnapshotComparison {
  private let reader: RepositoryReader
  private let path: ByteString
  private let before: SnapshotSource?
  private let after: SnapshotSource?

  /// Finds what is to be compared.
  ///
  /// - Throws: `LifecycleError` of the kind `notFound` when neither snapshot has the path;
  ///   `StoreError`.
  public init(
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
    } catch let error as LifecycleError where error.kind == .notFound {
      return nil
    }
  }

  /// What a comparison finds.
  public enum Finding: Sendable {
    case difference(SnapshotDifference)
    /// The directory at a path, or a part of its entries, cannot be read; that is not compared.
    case damage(ByteString, StoreError)
  }

  /// Gives the differences in the order of the paths, a directory before what is in it.
  public func run(_ body: (Finding) throws -> Void) throws {
    if let difference = difference(at: path, before?.entry, after?.entry) {
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
        if let difference = difference(at: path, before, after) {
          try body(.difference(difference))
        }
      }
      return .enter
    }
  }

  /// Nothing where both are the same, directories' trees aside.
  private func difference(
    at path: ByteString, _ before: TreeEntry?, _ after: TreeEntry?
  ) -> SnapshotDifference? {
    if before == nil, after == nil { return nil }
    let difference = SnapshotDifference(path: path, before: before, after: after)
    return difference.kind == .metadata && difference.aspects.isEmpty ? nil : difference
  }
}

extension [JointEntry] {
  /// The entry that a tree has.
  fileprivate func of(tree: Int?) -> TreeEntry? {
    guard let tree else { return nil }
    return first { $0.trees.contains(tree) }?.entry
  }
}

extension SnapshotSource {
  /// The entry; a snapshot's root has none.
  var entry: TreeEntry? {
    switch self {
    case .folder(_, let entry): entry
    case .single(let entry): entry
    }
  }

  /// The tree of a directory.
  var tree: TreeReference? {
    if case .folder(let tree, _) = self { tree } else { nil }
  }
}
