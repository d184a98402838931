internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

extension KeyCommand {
  /// `sandboxctl key rewrap`: gives stored objects headers for the current recipients.
  struct Rewrap: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "rewrap",
        abstract: "Rewrite the headers of stored data for the current recipients",
        usage: "sandboxctl key rewrap [--dry-run] [<options>]",
        discussion: """
          Replaces the headers of packs, index objects and snapshots that only an older identity \
          opens, so that the current recipients can open them. The data itself is copied \
          unchanged. Snapshots get new ids, and the volume needs space for the copies until the \
          old packs are removed.

          The next rewrap continues an interrupted one, and removes old objects that other \
          programs may still need now.

          \(Examples.text([
            "sandboxctl key rewrap --passphrase-file old --dry-run",
            "sandboxctl key rewrap --passphrase-file old",
          ]))
          """)
    }

    @OptionGroup var change: RepositoryChangeOptions

    func run(_ console: Console) throws -> ExitStatus {
      let choice = try change.repository.choice(for: console)
      let opened = try choice.open(console).repository
      let report = try change.run(counting: "object") { counters, isStopping in
        var rewrap = KeyRewrap(
          opened, isDry: change.dryRun, indexCache: opened.hostIndexCache,
          headCache: opened.hostHeadCache, workers: opened.workers, counters: counters,
          isStopping: isStopping)
        rewrap.willRemove = { snapshots in
          try opened.keepTrust(in: snapshots, at: choice.recordedLocation, keepsOld: true)
        }
        return try rewrap.run()
      }
      try opened.keepTrust(in: report.snapshots, at: choice.recordedLocation, keepsOld: false)
      console.warn(of: report.damagedCondemned)
      for error in report.damaged { console.warning("\(error); the object was not rewrapped") }
      try change.output.show(
        [report.json(isDry: change.dryRun)], lines: report.lines(isDry: change.dryRun), console)
      if report.isInterrupted { return .interrupted }
      return report.damaged.isEmpty ? .done : .damaged
    }
  }
}

extension Repository {
  /// Accepts the new snapshots in place of old ones that this host accepts by their ids. The
  /// content is the same.
  ///
  /// - Parameters:
  ///   - replaced: the new snapshots by the old ones.
  ///   - keepsOld: whether the old ones are still accepted, because they may not be removed.
  fileprivate func keepTrust(
    in replaced: [SnapshotID: SnapshotID], at path: RecordedLocation, keepsOld: Bool
  ) throws {
    let accepted = replaced.filter { trust.snapshots.contains($0.key) }
    guard !accepted.isEmpty else { return }
    _ = try KnownSigners(of: self, at: path).update { trust in
      if !keepsOld { trust.snapshots.subtract(accepted.keys) }
      trust.snapshots.formUnion(accepted.values)
    }
  }
}

extension KeyRewrap.Report {
  /// Returns the report as text.
  fileprivate func lines(isDry: Bool) -> [String] {
    if isComplete, rewrapped.objects == 0, left.objects == 0, removedPacks == 0 {
      return ["no older identity is needed: nothing to rewrap"]
    }
    if isDry, rewrapped.objects == 0 {
      return ["would only remove the older identities from the key: no object needs them"]
    }
    var lines = [
      "\(isDry ? "would rewrap" : "rewrapped") \(Sizes.count(rewrapped.packs, "pack")) with "
        + "\(Sizes.text(rewrapped.bytes)), \(Sizes.count(rewrapped.indexes, "index object")) and "
        + Sizes.count(rewrapped.snapshots, "snapshot")
    ]
    if isDry { return lines }
    if waitingPacks > 0 {
      lines.append(waitingLine(of: "old pack", removedBy: "a later run or prune"))
    }
    lines.append(conclusion)
    return lines
  }

  private var conclusion: String {
    if isComplete {
      return "the older identities are no longer needed and were removed from the key: the first "
        + "line of the recovery key opens everything"
    }
    if isInterrupted { return "interrupted: run 'sandboxctl key rewrap' again to continue" }
    if left.objects > 0 {
      return "\(Sizes.count(left.objects, "object")) still need an older identity: run 'sandboxctl "
        + "key rewrap' again later"
    }
    if needsPassphrase {
      return "the key still has the older identities: run 'sandboxctl key rewrap' once with its "
        + "passphrase to remove them"
    }
    return "the older identities are kept, because \(Sizes.count(writers, "other program")) may "
      + "have begun to write before the rotation: run 'sandboxctl key rewrap' again later"
  }

  /// Returns the report as `key rewrap --json` prints it.
  fileprivate func json(isDry: Bool) -> JSON {
    let pairs = snapshots.sorted { $0.key < $1.key }
    return [
      "dry_run": .bool(isDry), "packs": .integer(Int64(rewrapped.packs)),
      "bytes": .integer(Int64(clamping: rewrapped.bytes)),
      "indexes": .integer(Int64(rewrapped.indexes)),
      "snapshots": .integer(Int64(rewrapped.snapshots)),
      "replaced": .array(
        pairs.map { ["old": .string($0.key.hex), "new": .string($0.value.hex)] as JSON }),
      "removed_packs": .integer(Int64(removedPacks)),
      "removed_bytes": .integer(Int64(clamping: removedBytes)),
      "waiting_packs": .integer(Int64(waitingPacks)),
      "waiting_for": .array(waitingFor.map { .string($0.description) }),
      "ended_leases": endedLeasesJSON,
      "left": .integer(Int64(left.objects)), "writers": .integer(Int64(writers)),
      "older_identities": .integer(Int64(olderIdentities)),
      "damaged": .array(damaged.map { .string($0.description) }),
      "interrupted": .bool(isInterrupted),
    ]
  }
}
