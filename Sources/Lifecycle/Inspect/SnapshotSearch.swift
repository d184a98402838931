public import ArchiveStore
public import PolicyEngine
public import SystemIO

/// Looks in snapshots for what a pattern means: a pattern of one component is held against names,
/// any other against whole logical paths.
///
/// All snapshots are walked as one, so that what they share is read once, and what is the same in
/// several is told once. Directories that no path of the pattern leads through are not read.
public struct SnapshotSearch {
  private let pattern: Pattern
  private let snapshots: [StoredSnapshot]
  private let reader: RepositoryReader

  /// Prepares a search of snapshots.
  public init(_ pattern: Pattern, in snapshots: [StoredSnapshot], from reader: RepositoryReader) {
    self.pattern = pattern
    self.snapshots = snapshots
    self.reader = reader
  }

  /// What a search finds.
  public enum Finding: Sendable {
    /// An entry, in all snapshots that have it at this path just so.
    case found(ByteString, TreeEntry, [StoredSnapshot])
    /// A directory of which all, or a part of its entries, cannot be read in these snapshots.
    case damage(ByteString, StoreError, [StoredSnapshot])
  }

  /// Gives what is found in the order of the paths.
  public func run(_ body: (Finding) throws -> Void) throws {
    // How far each directory on the way has led.
    var way = [pattern.start]
    try reader.walkTogether(snapshots.map(\.snapshot.tree)) { path, found in
      switch found {
      case .damage(let error, let trees):
        try body(.damage(path, error, trees.map { snapshots[$0] }))
        return .skip
      case .entries(let entries, _):
        let (isMeant, step) = look(at: path, entries[0].entry.name, &way)
        for found in entries where isMeant {
          try body(.found(path, found.entry, found.trees.map { snapshots[$0] }))
        }
        return step
      }
    }
  }

  private func look(
    at path: ByteString, _ name: ByteString, _ way: inout [Pattern.Progress]
  ) -> (isMeant: Bool, step: WalkStep) {
    if pattern.isOfNames {
      return (name.withSpan { pattern.matches(name: $0) }, .enter)
    }
    let depth = path.bytes.count { $0 == UInt8(ascii: "/") }
    way.removeSubrange((depth + 1)...)
    let progress = name.withSpan { pattern.advance(way[depth], by: $0) }
    way.append(progress)
    return (pattern.isMatch(progress), progress.isHopeless ? .skip : .enter)
  }
}
