package import ArchiveStore
package import PolicyEngine
package import SystemIO

/// A search in snapshots for the entries that a pattern matches. A pattern of one component is
/// matched against names, any other against whole logical paths.
///
/// All snapshots are walked together, so shared trees are read once, and an entry that several
/// snapshots have is reported once. Directories in which the pattern cannot match are not read.
package struct SnapshotSearch {
  private let pattern: Pattern
  private let snapshots: [SnapshotHead]
  private let reader: RepositoryReader

  /// Prepares a search of snapshots.
  package init(_ pattern: Pattern, in snapshots: [SnapshotHead], from reader: RepositoryReader) {
    self.pattern = pattern
    self.snapshots = snapshots
    self.reader = reader
  }

  /// A finding of a search.
  package enum Finding: Sendable {
    /// An entry, with all snapshots that have exactly this entry at this path.
    case found(ByteString, TreeEntry, [SnapshotHead])
    /// A directory that cannot be read, completely or in part, in these snapshots.
    case damage(ByteString, StoreError, [SnapshotHead])
  }

  /// Reports the findings in path order.
  package func run(_ body: (Finding) throws -> Void) throws {
    // The progress of the pattern at each directory on the current path.
    var progressions = [pattern.start]
    try reader.walkTogether(snapshots.map(\.tree)) { path, found in
      switch found {
      case .damage(let error, let trees):
        try body(.damage(path, error, trees.map { snapshots[$0] }))
        return .skip
      case .entries(let entries, _):
        let (isSelected, step) = match(at: path, entries[0].entry.name, &progressions)
        for found in entries where isSelected {
          try body(.found(path, found.entry, found.trees.map { snapshots[$0] }))
        }
        return step
      }
    }
  }

  private func match(
    at path: ByteString, _ name: ByteString, _ progressions: inout [Pattern.Progress]
  ) -> (isSelected: Bool, step: TreeWalk.Step) {
    if pattern.isOfNames {
      return (name.withSpan { pattern.matches(name: $0) }, .enter)
    }
    let depth = path.bytes.count { $0 == UInt8(ascii: "/") }
    progressions.removeSubrange((depth + 1)...)
    let progress = name.withSpan { pattern.advance(progressions[depth], by: $0) }
    progressions.append(progress)
    return (pattern.isMatch(progress), progress.isHopeless ? .skip : .enter)
  }
}
