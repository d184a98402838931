package import ArchiveStore
internal import Codecs
package import SystemIO

/// Removes snapshots from a repository: those that no rule keeps, or those that are named.
package struct ForgetOperation {
  package let repository: Repository
  /// The heads of all snapshots, without those that `verifiedPlan` found to be damaged or gone.
  package private(set) var heads: SnapshotHeads
  /// The pinned snapshots.
  package let pins: Set<SnapshotID>
  /// The snapshots that were read and are intact.
  private var intact: Set<SnapshotID> = []
  private let cache: SnapshotHeadCache?

  /// Lists the snapshots of a repository.
  ///
  /// - Parameter cache: the host's cache of snapshot heads.
  package init(_ repository: Repository, cache: SnapshotHeadCache?) throws(StoreError) {
    (self.repository, self.cache) = (repository, cache)
    heads = try repository.heads(cache: cache)
    pins = try repository.pins()
  }

  /// Returns the plan that `make` makes. If the plan removes snapshots, those that it keeps are
  /// read first: heads come from a cache, and a snapshot that turns out to be damaged must not be
  /// the reason to remove an intact one. A damaged snapshot is moved to `heads.damaged`, and the
  /// plan is made again without it.
  ///
  /// - Throws: the errors of `make`.
  package mutating func verifiedPlan(
    _ make: (ForgetOperation) throws -> RetentionPlan
  ) throws -> RetentionPlan {
    while true {
      let plan = try make(self)
      if plan.removed.isEmpty || areIntact(plan.kept) { return plan }
    }
  }

  /// Reads snapshots. Removes those that are damaged or gone from the heads, and returns whether
  /// there are none. The heads came from bytes with the same hash, so only snapshots with a
  /// different hash are decoded, to find the reason.
  private mutating func areIntact(_ ids: [SnapshotID]) -> Bool {
    let unread = ids.filter { !intact.contains($0) }
    let suspects = repository.unverified(among: unread, threads: repository.workers)
    intact.formUnion(unread.filter { !suspects.contains($0) })
    var areIntact = true
    for id in unread where suspects.contains(id) {
      var failure: StoreError?
      if repository.snapshot(ifReadable: id, skip: { failure = $0 }) != nil {
        intact.insert(id)
      } else {
        heads.remove(id, because: failure)
        areIntact = false
      }
    }
    return areIntact
  }

  /// Returns the plan to remove the snapshots that no rule keeps. Snapshots that the repository
  /// does not accept are never the reason to remove others.
  ///
  /// - Parameter isSelected: whether a snapshot takes part; others are neither counted nor removed.
  package func plan(
    _ terms: RetentionTerms, of isSelected: (SnapshotHead) -> Bool = { _ in true }
  ) -> RetentionPlan {
    var terms = terms
    terms.isAccepted = isAccepted
    return RetentionPlan(heads.heads.filter(isSelected), pins: pins, terms)
  }

  private func isAccepted(_ head: SnapshotHead) -> Bool { repository.refusal(of: head) == nil }

  /// Returns the pinned snapshots that are lost.
  package func lostPinned() throws(StoreError) -> Set<SnapshotID> {
    pins.isSubset(of: heads.heads.map(\.id)) ? [] : try repository.lostPinned()
  }

  /// A named snapshot.
  package struct Named {
    package let id: SnapshotID
    /// Whether it may be removed even if it is damaged.
    package let isForced: Bool

    /// Names a snapshot.
    package init(_ id: SnapshotID, isForced: Bool = false) {
      self.id = id
      self.isForced = isForced
    }
  }

  /// Returns the plan to remove named snapshots.
  ///
  /// - Parameter now: the current time. A snapshot dated later does not count as one that remains
  ///   in its group.
  /// - Throws: `OperationError` if one is pinned, or the last regular one of its group, unless
  ///   `mayEmptyGroups`; `StoreError` if one cannot be read and its removal is not forced, or if a
  ///   later version wrote it, in which case it is not damaged.
  package func plan(
    removing named: [Named], grouping: SnapshotGrouping, mayEmptyGroups: Bool, now: Timestamp
  ) throws -> RetentionPlan {
    let ids = Set(named.map(\.id))
    let pinned = ids.intersection(pins).sorted()
    guard pinned.isEmpty else { throw Self.pinned(pinned) }
    var plan = RetentionPlan(
      heads.heads, removing: ids, grouping: grouping, isAccepted: isAccepted)
    if !mayEmptyGroups, let group = plan.emptied(at: now).first { throw Self.emptied(group) }
    let known = Set(heads.heads.map(\.id))
    var seen: Set<SnapshotID> = []
    for one in named where !known.contains(one.id) && seen.insert(one.id).inserted {
      if !one.isForced || isOfLaterVersion(one.id) { throw try damage(of: one.id) }
      plan.damaged.append(one.id)
    }
    return plan
  }

  /// Removes the snapshots that a plan does not keep.
  ///
  /// - Parameter removed: called for each removed snapshot, even if an error follows.
  /// - Throws: `StoreError`: `leaseLost`, `interrupted`, or the error of the first snapshot that
  ///   cannot be removed.
  package func run(
    _ plan: RetentionPlan, counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }, removed: (SnapshotID) -> Void
  ) throws(StoreError) -> SnapshotRemoval.Report {
    let ids = plan.removed
    if ids.isEmpty { return SnapshotRemoval.Report() }
    // If no snapshot were left, a check would report the cached ones as lost.
    if Set(ids).isSuperset(of: heads.heads.map(\.id)) { cache?.clear() }
    counters.expect(files: ids.count, bytes: 0)
    return try SnapshotRemoval(repository, counters: counters, isStopping: isStopping)
      .run(ids, forced: Set(plan.damaged), removed: removed)
  }
}

// MARK: - Errors

extension ForgetOperation {
  private static func pinned(_ ids: [SnapshotID]) -> OperationError {
    let names = ids.map { String($0.hex.prefix(8)) }
    let isOne = names.count == 1
    return OperationError(
      .failed, code: .snapshotPinned,
      "cannot forget the snapshot\(isOne ? "" : "s") \(names.joined(separator: ", ")): "
        + (isOne ? "it is pinned" : "they are pinned"),
      hint: "'sandboxctl snapshots unpin \(names.joined(separator: " "))' removes the "
        + (isOne ? "pin" : "pins"))
  }

  private static func emptied(_ group: RetentionPlan.Group) -> OperationError {
    let names = group.entries.filter { !$0.isKept && $0.head.isRegular }
      .map { String($0.head.id.hex.prefix(8)) }
    let shown = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? ", …" : "")
    let root = group.entries.last.map { "'\($0.head.device.root)'" } ?? ""
    return OperationError(
      .failed, code: .lastSnapshot,
      "cannot forget \(shown): no other snapshot of the same group is left (device \(root))",
      hint: "add '--allow-last' to remove it anyway")
  }

  /// Whether a snapshot without a head has a format that only a later version can read.
  private func isOfLaterVersion(_ id: SnapshotID) -> Bool {
    heads.damaged.contains { $0.code == .unsupported && $0.subject.contains(id.hex) }
  }

  /// Returns the error for a snapshot without a head: it is damaged or gone.
  private func damage(of id: SnapshotID) throws(StoreError) -> StoreError {
    let name = String(id.hex.prefix(8))
    do throws(StoreError) {
      _ = try repository.snapshot(id)
    } catch {
      guard error.code != .missing else {
        return StoreError(
          .noSnapshot, "find the snapshot", subject: name, reason: "no snapshot has this id",
          hint: "run 'sandboxctl snapshots' to list the snapshots")
      }
      let force = "give its full id and '--force' to remove it: \(id.hex)"
      return StoreError(
        error.code, "forget the snapshot", subject: name,
        reason: "it cannot be read: \(error.reason)",
        hint: error.isRefused || error.code == .unsupported ? error.hint ?? force : force,
        cause: error.cause)
    }
    // It was written after the listing.
    return StoreError(
      .busy, "forget the snapshot", subject: name, reason: "it was just made",
      hint: "run the command again")
  }
}
