package import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import SandboxModel
package import SystemIO

/// Imports the snapshots of another backup program, one by one: each becomes a snapshot with its
/// time, host, user and tags, and with a tag that identifies it to later runs.
package struct PeerImport {
  private let peer: Peer
  private let repository: Repository
  /// The name of the directory in the snapshots; nil for the host of each snapshot.
  private let name: ByteString?

  /// The references of the snapshots that were imported.
  private var references: Set<String> = []
  /// The snapshots of each source that were imported.
  private var history: [Digest: [Position]] = [:]

  /// The place of a snapshot among those of its source.
  private struct Position {
    let time: Timestamp
    let sequence: UInt64
  }

  /// Prepares the import into a repository, and finds the snapshots that were imported before.
  ///
  /// Without the key of an encrypted repository, these are the ones that this host imported. A
  /// snapshot without a trusted signature does not count, because another user could use it to keep
  /// snapshots from being imported.
  ///
  /// - Parameter cache: this host's cache of snapshot heads; nil for none.
  package init(
    from peer: Peer, to repository: Repository, name: ByteString?, cache: SnapshotHeadCache?
  ) throws(StoreError) {
    self.peer = peer
    self.repository = repository
    self.name = name
    let prefix = "\(peer.kind.rawValue):"
    for head in try repository.knownHeads(cache: cache).heads {
      if repository.isReadable, repository.refusal(of: head) != nil { continue }
      let found = head.tags.filter { $0.utf8.starts(with: prefix.utf8) }
      references.formUnion(found)
      history[head.source, default: []].append(
        Position(time: head.time, sequence: head.sequence))
    }
  }

  /// Whether a snapshot was imported.
  package func hasImported(_ snapshot: PeerSnapshot) -> Bool {
    references.contains(snapshot.reference(peer.kind))
  }

  /// Imports a snapshot.
  ///
  /// - Parameter request: the request of an import. Its placement, time, host, user and tags are
  ///   replaced; its own tags precede those of the snapshot.
  /// - Throws: `InterchangeError`, also if the program fails during the import; `OperationError`
  ///   and `StoreError` as in other imports. Then no snapshot is made.
  package mutating func run(
    _ snapshot: PeerSnapshot, _ request: ImportRequest
  ) throws -> ImportReport {
    var request = request
    request.placement = placement(of: snapshot)
    request.time = .at(snapshot.time)
    // borg can create empty archives. Without a snapshot of one, each later run would report a
    // failure.
    request.allowsNothing = true
    if !snapshot.host.isEmpty { request.host = snapshot.host }
    if !snapshot.user.isEmpty { request.user = snapshot.user }
    request.tags += snapshot.allTags(peer.kind)
    let device = request.placement.device
    let identity = SourceIdentity.digest(of: device.identity, root: "", layout: device.layout)
    if repository.isReadable { request.sequence = sequence(at: snapshot.time, of: identity) }
    var source = try PeerSource(snapshot, of: peer, isStopping: request.isStopping)
    let report = try ImportOperation(to: repository, request).run(&source)
    let stored = report.snapshot.snapshot
    history[stored.source, default: []].append(
      Position(time: stored.time, sequence: stored.sequence))
    return report
  }

  /// Returns the position of a snapshot: after all those of its source that are not later. A
  /// snapshot that failed before is placed between those imported meanwhile, so that it is not the
  /// latest.
  private func sequence(at time: Timestamp, of source: Digest) -> UInt64 {
    let earlier = (history[source] ?? []).filter { $0.time <= time }
    return (earlier.map(\.sequence).max() ?? 0) &+ 1
  }

  /// Returns the location of a snapshot's entries: the directory of the host, with all paths below
  /// it.
  package func placement(of snapshot: PeerSnapshot) -> ImportRequest.Placement {
    let host = snapshot.host.isEmpty ? peer.kind.rawValue : snapshot.host
    var component = LogicalName(name ?? ByteString(host)).component
    if component.nameFault != nil { component = ByteString(peer.kind.rawValue) }
    var placement = ImportRequest.Placement.directory(component, from: peer.shownLocation)
    placement.device.identity = snapshot.source(peer.kind)
    // Lists show the root after user and host.
    if snapshot.paths.count == 1, let path = snapshot.paths.first {
      placement.device.root = ByteString(path)
    }
    return placement
  }
}
