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

/// The few members by which a run finds the snapshots before it.
struct SnapshotHead: DatedSnapshot {
  let id: SnapshotID
  let source: Digest
  let sequence: UInt64
  let time: Timestamp
  let scope: Scope

  private static let members: Set<String> = [
    "format", "version", "repository", "source", "sequence", "time", "scope",
  ]

  /// Reads the head of a stored snapshot; nothing where it is another repository's. Of what else it
  /// holds only the form is looked at.
  init?(id: SnapshotID, bytes: [UInt8], of repository: Digest) throws(StoreError) {
    let object = "snapshots/\(id.hex).json"
    let line = try StoredSnapshot.line(of: bytes, id: id)
    let fields = try Snapshot.fields(line, object: object, keeping: Self.members)
    guard try fields.digest("repository") == repository else { return nil }
    self.id = id
    source = try fields.digestIfPresent("source") ?? .missing
    sequence = try fields.count("sequence", default: 0)
    time = try Snapshot.time(fields)
    scope = try Scope(fields.fieldsOrNone("scope"))
  }
}

extension Repository {
  /// Finds what a run goes by: one snapshot after another is looked at, and one is kept whole, however
  /// many there are. Those that cannot be read are passed over.
  public func history(of source: Digest, scope: Scope) throws(StoreError) -> SourceHistory {
    var heads: [SnapshotHead] = []
    for id in try RepositoryListing.snapshots(storage) {
      let path = RepositoryLayout.snapshot(id)
      guard let bytes = try? storage.load(path, limit: FormatLimit.snapshot),
        let head = try? SnapshotHead(id: id, bytes: bytes, of: self.id), head.source == source
      else { continue }
      heads.append(head)
    }
    let sequence = heads.map(\.sequence).max() ?? 0
    Self.sort(&heads)
    for head in heads.reversed() where head.scope == scope {
      if let stored = try? snapshot(head.id) {
        return SourceHistory(last: stored, sequence: sequence)
      }
    }
    return SourceHistory(last: nil, sequence: sequence)
  }
}
