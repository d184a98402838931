internal import ArchiveStore
internal import Audit
internal import DeviceScan
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// Reads the changes between the last snapshots of a device for an audit.
struct AuditHistory {
  /// The number of most recent snapshots between which bundles are compared, whatever their dates.
  static let snapshots = 8

  private let scan: DeviceScan
  private let options: RepositoryOptions
  private let console: Console

  init(of scan: DeviceScan, in options: RepositoryOptions, _ console: Console) {
    (self.scan, self.options, self.console) = (scan, options, console)
  }

  /// Returns the changes, or nil if there is no repository. A default repository that cannot be
  /// opened is only reported: the audit of files does not depend on it.
  func read() throws -> ChangeHistory? {
    let choice: RepositoryOptions.Choice
    do {
      choice = try options.choice(for: console)
      guard options.repo != nil || choice.identity != nil else { return nil }
    } catch {
      // There is no location for the user's own repository.
      guard options.repo == nil else { throw error }
      return nil
    }
    do {
      return try read(choice.open(console).repository)
    } catch {
      if options.repo != nil { throw error }
      console.warning("the snapshots are not examined: \(error)")
      return nil
    }
  }

  private func read(_ repository: Repository) throws -> ChangeHistory {
    let heads = try repository.hostHeads().heads.filter {
      $0.device.identity == scan.device.identity.description && $0.scope == .device
        && $0.reason != .preRestore
    }
    var history = ChangeHistory()
    guard let last = heads.last else { return history }
    let reader = try repository.beginReading(cache: repository.hostIndexCache)
    defer { console.warn(of: reader.remarks) }
    let daily = ChangeHistory.daily(heads.map(\.time)).map { heads[$0] }
    for (before, after) in zip(daily, daily.dropFirst()).reversed() {
      try StopSignals.throwIfStopping()
      let pair = try (repository.snapshot(before.id), repository.snapshot(after.id))
      history.beginInterval(after.time)
      try SnapshotComparison(pair.0, pair.1, path: "", from: reader).run { finding in
        guard case .difference(let difference) = finding else { return }
        Self.addFile(difference, to: &history)
      }
    }
    let recent = heads.suffix(Self.snapshots)
    for (before, after) in zip(recent, recent.dropFirst()) {
      let bundles = Self.bundles(of: before, after.apps)
      if bundles.isEmpty { continue }
      try StopSignals.throwIfStopping()
      let pair = try (repository.snapshot(before.id), repository.snapshot(after.id))
      for bundle in bundles {
        try SnapshotComparison(pair.0, pair.1, path: bundle, from: reader).run { finding in
          guard case .difference(let difference) = finding, difference.path != bundle,
            difference.kind != .metadata
          else { return }
          history.addBundleChange(in: bundle)
        }
      }
    }
    try compareDevice(with: last, repository.snapshot(last.id), from: reader, to: &history)
    return history
  }

  /// Compares the bundles on the device with their records in the last snapshot.
  private func compareDevice(
    with head: SnapshotHead, _ snapshot: StoredSnapshot, from reader: RepositoryReader,
    to history: inout ChangeHistory
  ) throws {
    let apps = scan.device.apps.map { app in
      AppRecord(
        identifier: app.identifier.description, version: app.version?.description,
        build: app.build?.description,
        containers: scan.device.containers(of: app).map(\.logicalPrefix))
    }
    let bundles = Set(Self.bundles(of: head, apps))
    for container in scan.containers where bundles.contains(container.container.logicalPrefix) {
      try StopSignals.throwIfStopping()
      var comparison = BundleComparison(container, since: head.time, reader)
      let count = try comparison.differences(from: snapshot)
      for _ in 0..<count { history.addChangeSince(in: container.container.logicalPrefix) }
    }
  }

  /// Returns the bundle containers of the apps whose version and build are those of a snapshot.
  private static func bundles(of before: SnapshotHead, _ after: [AppRecord]) -> [ByteString] {
    let old = Dictionary(before.apps.map { ($0.identifier, $0) }) { first, _ in first }
    return after.flatMap { app -> [ByteString] in
      guard let earlier = old[app.identifier], app.build != nil, earlier.build == app.build,
        earlier.version == app.version
      else { return [] }
      return app.containers.filter {
        $0.lastComponent == "bundle" && earlier.containers.contains($0)
      }
    }
  }

  private static func addFile(_ difference: SnapshotDifference, to history: inout ChangeHistory) {
    if difference.path.components.dropFirst(2).first == "bundle" { return }
    switch difference.kind {
    case .content: history.addChange(difference.path)
    case .added, .type: history.addCreation(difference.path)
    case .removed, .metadata: return
    }
  }
}

extension StopSignals {
  /// - Throws: `interrupted` if a signal asked the program to stop.
  fileprivate static func throwIfStopping() throws(OperationError) {
    if isStopping() {
      throw OperationError(.interrupted, "the audit was interrupted", hint: "run it again")
    }
  }
}
