internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// The number of names of hard-linked files. A snapshot records only the group of a name, so they
/// are counted in the whole snapshot, once, when its first hard-linked file is examined.
final class LinkCounts: Sendable {
  private typealias Counts = [ByteString: UInt32]

  private let makeReader: @Sendable () throws -> RepositoryReader
  /// The counts of the last snapshots. Held while names are counted: others wait for the result.
  private let counts = Mutex(CostBoundedCache<TreeReference, Counts>(capacity: groupLimit))
  /// The maximum number of groups that are counted in one snapshot, and of all that are held.
  private static let groupLimit = 1_000_000

  init(_ makeReader: @escaping @Sendable () throws -> RepositoryReader) {
    self.makeReader = makeReader
  }

  /// Returns the number of names of a group: at least two, because a group of one name is recorded
  /// only if other names were excluded, and two if the group was not counted.
  func count(of group: ByteString, in snapshot: TreeReference) -> UInt32 {
    counts.withLock { held in
      if let counts = held.value(snapshot) { return counts[group] ?? 2 }
      let counts = count(in: snapshot)
      held.insert(counts, for: snapshot, cost: counts.count)
      return counts[group] ?? 2
    }
  }

  /// Counts the names of each group. Names in damaged directories are not counted.
  private func count(in snapshot: TreeReference) -> Counts {
    var counts: Counts = [:]
    try? makeReader().walkPastDamage(snapshot) { _, finding in
      guard case .entry(let entry) = finding, let group = entry.linkGroup else { return .enter }
      if counts.count < Self.groupLimit || counts[group] != nil { counts[group, default: 0] += 1 }
      return .enter
    }
    return counts
  }
}
