public import Codecs
internal import SystemIO

/// What a source's earlier runs left in the repository.
public struct SourceHistory: Sendable {
  /// The last snapshot of the scope that was asked for.
  public let last: StoredSnapshot?
  /// The greatest sequence of the source's snapshots, 0 without any.
  public let sequence: UInt64
}

/// What tells where a snapshot belongs among the others.
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
  /// Finds the earlier runs that a run goes by. Snapshots are read one after another, and only those
  /// of which the cache has no head; one is kept whole. Those that cannot be read are skipped.
  public func history(
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
