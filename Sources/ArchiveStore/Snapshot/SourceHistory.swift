package import Codecs
internal import SystemIO

/// The earlier runs of a source in the repository.
package struct SourceHistory: Sendable {
  /// The last snapshot of the requested scope.
  package let last: StoredSnapshot?
  /// The greatest sequence among the source's snapshots; 0 without snapshots.
  package let sequence: UInt64
}

/// The members that determine the order of snapshots.
protocol DatedSnapshot {
  var id: SnapshotID { get }
  var source: Digest { get }
  var sequence: UInt64 { get }
  var time: Timestamp { get }
}

extension StoredSnapshot: DatedSnapshot {
  var source: Digest { snapshot.source }
  var sequence: UInt64 { snapshot.sequence }
  var time: Timestamp { snapshot.time }
}

extension Repository {
  /// Returns the earlier runs of a source. Snapshots without a cached head are read one after
  /// another, and only one is kept in memory. Unreadable snapshots are skipped.
  package func history(
    of source: Digest, scope: Scope, cache: SnapshotHeadCache? = nil
  ) throws(StoreError) -> SourceHistory {
    let heads = try heads(cache: cache).heads.filter { $0.source == source }
    let sequence = heads.map(\.sequence).max() ?? 0
    for head in heads.reversed() where head.scope == scope {
      if let stored = try? snapshot(head.id) {
        return SourceHistory(last: stored, sequence: sequence)
      }
    }
    return SourceHistory(last: nil, sequence: sequence)
  }
}
