internal import ArchiveStore
internal import Audit
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// Reads the changes between the last snapshots of a device for an audit.
struct AuditHistory {
  /// The maximum number of snapshots: a week of daily ones and the one before it.
  static let snapshots = 8

  private let device: Device
  private let options: RepositoryOptions
  private let console: Console

  init(of device: Device, in options: RepositoryOptions, _ console: Console) {
    (self.device, self.options, self.console) = (device, options, console)
  }

  /// Returns the changes, or nil if there is no repository. One that is not named and cannot be
  /// opened is reported: the audit of files does not depend on it.
  func read() throws -> ChangeHistory? {
    let choice: RepositoryOptions.Choice
    do {
      choice = try options.choice()
      guard options.repo != nil || choice.identity != nil else { return nil }
    } catch {
      // No location for the user's own repository.
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
      $0.device.identity == device.identity.description && $0.scope == .device
        && $0.reason != .preRestore
    }.suffix(Self.snapshots)
    var history = ChangeHistory()
    guard heads.count > 1 else { return history }
    let reader = try repository.beginReading(cache: repository.hostIndexCache)
    defer { console.warn(of: reader.remarks) }
    for (before, after) in zip(heads, heads.dropFirst()) {
      try StopSignals.throwIfStopping()
      let pair = try (repository.snapshot(before.id), repository.snapshot(after.id))
      history.beginInterval(after.time)
      let same = Self.bundles(of: before, after)
      try SnapshotComparison(pair.0, pair.1, path: "", from: reader).run { finding in
        guard case .difference(let difference) = finding else { return }
        Self.add(difference, to: &history, same: same)
      }
    }
    return history
  }

  /// Returns the bundle containers of the apps whose version and build are the same in both
  /// snapshots.
  private static func bundles(of before: SnapshotHead, _ after: SnapshotHead) -> [ByteString] {
    let old = Dictionary(before.apps.map { ($0.identifier, $0) }) { first, _ in first }
    return after.apps.flatMap { app -> [ByteString] in
      guard let earlier = old[app.identifier], app.build != nil, earlier.build == app.build,
        earlier.version == app.version
      else { return [] }
      return app.containers.filter {
        $0.lastComponent == "bundle" && earlier.containers.contains($0)
      }
    }
  }

  private static func add(
    _ difference: SnapshotDifference, to history: inout ChangeHistory, same bundles: [ByteString]
  ) {
    let isOfBundle = difference.path.components.dropFirst(2).first == "bundle"
    switch difference.kind {
    case .content where !isOfBundle: history.addChange(difference.path)
    case .content, .added, .removed, .type:
      guard isOfBundle, let bundle = bundles.first(where: { difference.path.isWithin($0) }),
        difference.path != bundle
      else { return }
      history.addBundleChange(in: bundle)
    case .metadata: return
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
