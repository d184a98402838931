package import ArchiveStore
package import SystemIO

/// The name of a snapshot, for its user.
package enum SnapshotName: Equatable {
  /// The snapshot `back` steps before the newest of its device.
  case latest(back: Int, text: String)
  /// An id, or its first characters.
  case id(String)
  /// The newest snapshot before a time.
  case before(Timestamp, text: String)
}

/// Finds the snapshots that names refer to, with a single listing. Each remark on the choice is
/// reported once.
package final class SnapshotFinder {
  /// A remark on the choice of a snapshot.
  package enum Remark {
    /// A snapshot that may be the requested one cannot be read.
    case skipped(StoreError)
    /// A path in a snapshot that may be the requested one cannot be read.
    case unreadable(ByteString, in: StoredSnapshot, StoreError)
    /// Other devices have a matching snapshot, too: the newest of each.
    case otherDevices([SnapshotHead], than: SnapshotHead, named: String)
    /// A snapshot that was chosen because of its time is dated in the future: a snapshot of another
    /// source of the same device may be newer. The newest of those is given.
    case future(SnapshotHead, before: SnapshotHead, named: String)
    /// A snapshot that was chosen is not signed by a trusted signer.
    case untrusted(SnapshotHead, TrustedSigners.Refusal)
    /// A snapshot that was chosen by its name, or because all were requested.
    case found(SnapshotHead)
  }

  private let repository: Repository
  private let cache: SnapshotHeadCache?
  private let notify: (Remark) -> Void
  private var heads: SnapshotHeads?
  /// The identities of the devices for which the remark about other devices was reported.
  private var reportedDevices: Set<String> = []
  /// The snapshots for which the remark about the future was reported.
  private var reportedFuture: Set<SnapshotID> = []

  /// Creates a finder.
  ///
  /// - Parameters:
  ///   - cache: the host's cache of snapshot heads.
  ///   - notify: receives the remarks.
  package init(
    _ repository: Repository, cache: SnapshotHeadCache?, notify: @escaping (Remark) -> Void
  ) {
    (self.repository, self.cache, self.notify) = (repository, cache, notify)
  }

  /// Returns a snapshot. Reports unreadable snapshots that may be the requested one, and matching
  /// snapshots of other devices.
  ///
  /// `latest` and times name snapshots of a whole device, or, with `apps`, snapshots that contain
  /// the apps. Snapshots that a restore made are named only by their ids.
  ///
  /// - Parameter fits: whether a snapshot can have the path that is named with it. Those that can
  ///   are preferred, because different devices in one repository have different apps.
  package func find(
    _ name: SnapshotName, holding apps: [String] = [],
    fitting fits: @escaping (SnapshotHead) -> Bool = { _ in true }
  ) throws -> StoredSnapshot {
    let found = try choose(name, holding: apps, fitting: fits)
    notify(.found(SnapshotHead(found)))
    reportTrust(in: found)
    return found
  }

  private func reportTrust(in found: StoredSnapshot) {
    guard let refusal = repository.refusal(of: found) else { return }
    notify(.untrusted(SnapshotHead(found), refusal))
  }

  /// Returns the heads of all snapshots. The newest one of each device and state is reported.
  func all() throws(StoreError) -> SnapshotHeads {
    let all = try repository.heads(cache: cache)
    var last: SnapshotHead?
    for head in all.heads.reversed() {
      if let last, last.sharesMembers(with: head) || last.device == head.device { continue }
      notify(.found(head))
      last = head
    }
    return all
  }

  /// Returns the newest snapshot that has an entry, and the logical path of the entry, or nil if no
  /// readable one has it. Searches from newest to oldest. Snapshots that are damaged or may not be
  /// read are skipped, and so are those in which a directory on the path to the entry is damaged.
  ///
  /// - Parameter path: returns the logical path in a snapshot; nil or empty if there is none.
  package func newest(
    with path: (Snapshot) -> ByteString?, from reader: RepositoryReader
  ) throws(StoreError) -> (stored: StoredSnapshot, path: ByteString)? {
    let heads = try headsForChoice().heads.filter { $0.reason != .preRestore }
    for head in heads.reversed() {
      var failure: StoreError?
      let found = repository.snapshot(ifReadable: head.id, skip: { failure = $0 })
      if let failure {
        if failure.isStoreFailure { throw failure }
        notify(.skipped(failure))
      }
      guard let stored = found, let logical = path(stored.snapshot), !logical.isEmpty
      else { continue }
      do throws(StoreError) {
        if try reader.entry(at: logical, in: stored.snapshot.tree) != nil {
          reportFuture(head, named: "latest", among: heads)
          reportTrust(in: stored)
          return (stored, logical)
        }
      } catch {
        guard error.kind == .damaged else { throw error }
        notify(.unreadable(logical, in: stored, error))
      }
    }
    return nil
  }

  private func choose(
    _ name: SnapshotName, holding apps: [String], fitting fits: @escaping (SnapshotHead) -> Bool
  ) throws -> StoredSnapshot {
    let isSelected = { (snapshot: SnapshotHead) in
      snapshot.reason != .preRestore
        && (apps.isEmpty ? snapshot.scope == .device : apps.allSatisfy(snapshot.holds))
    }
    switch name {
    case .id(let text): return try repository.snapshot(matching: text)
    case .latest(let back, let text):
      let isFit = try preferring(fits, among: isSelected)
      return try choose(named: text, holding: apps, among: isFit) { heads throws(StoreError) in
        try heads.latest(back, named: text, where: isFit)
      }
    case .before(let end, let text):
      let isEarlier = { (snapshot: SnapshotHead) in isSelected(snapshot) && snapshot.time < end }
      let isFit = try preferring(fits, among: isEarlier)
      return try choose(named: text, holding: apps, among: isFit) { heads throws(StoreError) in
        try heads.newest(before: end, named: text) {
          $0.time < end ? isFit($0) : isSelected($0)
        }
      }
    }
  }

  /// Returns the condition for the selected snapshots that fit; if there are none, the condition
  /// for all selected ones, so that an error refers to the newest one.
  private func preferring(
    _ fits: @escaping (SnapshotHead) -> Bool, among isSelected: @escaping (SnapshotHead) -> Bool
  ) throws(StoreError) -> (SnapshotHead) -> Bool {
    // Most snapshots of a device share the members on which the decision depends.
    var known: (head: SnapshotHead, isFit: Bool)?
    let isFit = { (head: SnapshotHead) -> Bool in
      guard isSelected(head) else { return false }
      if let known, known.head.sharesMembers(with: head) { return known.isFit }
      let isFit = fits(head)
      known = (head, isFit)
      return isFit
    }
    return try headsForChoice().heads.contains(where: isFit) ? isFit : isSelected
  }

  /// Chooses a snapshot by the heads and reads it. A damaged snapshot may be the requested one: it
  /// is reported, and another is chosen.
  private func choose(
    named text: String, holding apps: [String], among isSelected: (SnapshotHead) -> Bool,
    _ choose: (SnapshotHeads) throws(StoreError) -> SnapshotHead
  ) throws -> StoredSnapshot {
    var heads = try headsForChoice()
    try requireOne(holding: apps, in: heads)
    let found = try repository.snapshot(
      among: &heads, skip: { notify(.skipped($0)) }, choose: choose)
    self.heads = heads
    let selected = heads.heads.filter(isSelected)
    reportDevices(of: SnapshotHead(found), named: text, among: selected)
    reportFuture(SnapshotHead(found), named: text, among: selected)
    return found
  }

  /// Returns the heads. Reports snapshots without a head, because they may be the requested one.
  private func headsForChoice() throws(StoreError) -> SnapshotHeads {
    if let heads { return heads }
    let heads = try repository.heads(cache: cache)
    try heads.requireSent()
    for error in heads.damaged { notify(.skipped(error)) }
    self.heads = heads
    return heads
  }

  /// Reports the device of a snapshot if other devices have a matching one, because no argument
  /// names a device.
  private func reportDevices(of found: SnapshotHead, named text: String, among all: [SnapshotHead])
  {
    let identity = found.device.identity
    let shared = SharedIdentities(all)
    var seen: Set<ReportedDevice> = [ReportedDevice(found, shared)]
    let others = all.reversed().filter { seen.insert(ReportedDevice($0, shared)).inserted }
    guard !others.isEmpty, reportedDevices.insert(identity).inserted else { return }
    notify(.otherDevices(others, than: found, named: text))
  }

  /// A device of the remark about other devices.
  private struct ReportedDevice: Hashable {
    let identity: String
    /// The host name, if several machines have the identity.
    let host: String?

    init(_ head: SnapshotHead, _ shared: SharedIdentities) {
      identity = head.device.identity
      host = shared.contains(head) ? head.host : nil
    }
  }

  /// Reports that a snapshot is dated in the future, if that is why it precedes one of another
  /// source. Within a source, the sequence decides, regardless of the clock.
  private func reportFuture(_ found: SnapshotHead, named text: String, among all: [SnapshotHead]) {
    let now = Host.now()
    // The clocks of hosts differ slightly.
    guard found.time.since(now) > Self.clockTolerance, reportedFuture.insert(found.id).inserted
    else { return }
    let other = all.last { head in
      head.device.identity == found.device.identity && head.time <= now
        && (head.source != found.source || head.sequence == 0)
    }
    if let other { notify(.future(found, before: other, named: text)) }
  }

  /// The seconds by which a snapshot of another host may be later than now.
  private static let clockTolerance = 60.0

  private func requireOne(
    holding apps: [String], in heads: SnapshotHeads
  ) throws(OperationError) {
    let isThere = heads.heads.contains { head in
      head.reason != .preRestore && apps.allSatisfy(head.holds)
    }
    if apps.isEmpty || isThere { return }
    let names = apps.map { "'\(ByteString($0))'" }.joined(separator: " and ")
    throw OperationError(
      .notFound, code: .noApp, "cannot find \(names): no snapshot has an app of that name",
      hint: "'sandboxctl snapshots show latest' lists its apps")
  }
}

extension AppRecord {
  /// Whether a text names the app: its identifier, its last component, or its display name,
  /// ignoring case.
  package func isCalled(_ text: String) -> Bool {
    let wanted = text.lowercased()
    let id = identifier.lowercased()
    return id == wanted || id.split(separator: ".").last.map(String.init) == wanted
      || name?.lowercased() == wanted
  }
}

extension SnapshotHead {
  /// Whether the snapshot has an app of that name.
  package func holds(_ name: String) -> Bool {
    apps.contains { app in
      (app.identifier == name || app.isCalled(name)) && !app.containers.isEmpty
    }
  }
}
