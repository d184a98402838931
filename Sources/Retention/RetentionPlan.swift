// Decides which snapshots of a repository are kept, and removes the others.
//
// The choice is pure: it is computed from the snapshots' heads, the rules, the pins, the current
// time and the calendar of a time zone (`RetentionPlan`), with the semantics of restic's forget.
// The operation (`ForgetOperation`) carries out exactly such a plan.
//
// Heads are read from a cache, so the operation reads the snapshots that a plan keeps before it
// removes others. Not guaranteed: that the data of a kept snapshot is intact, which only a check
// can tell. The data of removed snapshots stays in the repository until a prune.
package import ArchiveStore
internal import Codecs
package import SystemIO

/// The request for a plan: the rules, and the circumstances under which they apply.
package struct RetentionTerms {
  package var rules: RetentionRules
  package var grouping: SnapshotGrouping
  /// The current time. Later snapshots are neither counted nor removed.
  package var now: Timestamp
  package var calendar: RetentionCalendar
  /// Returns the number of seconds for which the policy keeps an automatic snapshot, or nil if it
  /// is unknown.
  package var retain: (SnapshotHead) -> Int64?
  /// Whether this host accepts a snapshot.
  package var isAccepted: (SnapshotHead) -> Bool = { _ in true }
  /// Whether the rules may remove all snapshots of a group.
  package var mayEmptyGroups = false

  /// Creates a request.
  package init(
    _ rules: RetentionRules, grouping: SnapshotGrouping = .standard, now: Timestamp,
    calendar: RetentionCalendar = .host, retain: @escaping (SnapshotHead) -> Int64?
  ) {
    self.rules = rules
    self.grouping = grouping
    self.now = now
    self.calendar = calendar
    self.retain = retain
  }
}

/// The snapshots to keep and to remove.
package struct RetentionPlan {
  /// A snapshot and the reasons to keep it.
  package struct Entry {
    package let head: SnapshotHead
    /// The reasons; empty if the snapshot is to be removed.
    package let reasons: [KeepReason]

    package var isKept: Bool { !reasons.isEmpty }
  }

  /// The snapshots with a common key.
  package struct Group {
    package let key: SnapshotGrouping.Key
    /// The snapshots, the oldest first.
    package let entries: [Entry]
    /// Whether the rules keep no snapshot of the group. This is refused, and all of them stay.
    package let isRefused: Bool

    package var kept: Int { entries.count(where: \.isKept) }
    package var removed: Int { entries.count - kept }
  }

  /// The groups, in the order of their oldest snapshots.
  package let groups: [Group]
  /// Damaged snapshots to remove, which belong to no group.
  package var damaged: [SnapshotID] = []

  /// The snapshots to keep.
  package var kept: [SnapshotID] {
    groups.flatMap { $0.entries.filter(\.isKept).map(\.head.id) }
  }

  /// The snapshots to remove, the oldest of each group first.
  package var removed: [SnapshotID] {
    groups.flatMap { $0.entries.filter { !$0.isKept }.map(\.head.id) } + damaged
  }
}

// MARK: - By rules

extension RetentionPlan {
  /// Applies rules to snapshots.
  ///
  /// Snapshots dated in the future are kept and do not take part. Automatic snapshots are kept as
  /// long as the policy says. All others are subject to the rules, from the newest to the oldest of
  /// each group, by age (docs/repository-format.md, "Snapshot"). Pinned ones are kept in any case.
  package init(_ heads: [SnapshotHead], pins: Set<SnapshotID>, _ terms: RetentionTerms) {
    groups = Self.grouped(heads, by: terms.grouping, terms.isAccepted).map { key, heads in
      Group(key, heads, pins: pins, terms: terms)
    }
  }

  /// Groups snapshots. Snapshots that this host does not accept are in separate groups: otherwise,
  /// anyone who can write to the store could add some and thus make the rules remove all others.
  private static func grouped(
    _ heads: [SnapshotHead], by grouping: SnapshotGrouping,
    _ isAccepted: (SnapshotHead) -> Bool
  ) -> [(key: SnapshotGrouping.Key, heads: [SnapshotHead])] {
    var indexes: [SnapshotGrouping.Key: Int] = [:]
    var groups: [(key: SnapshotGrouping.Key, heads: [SnapshotHead])] = []
    for head in heads {
      var key = grouping.key(of: head)
      key.isAccepted = isAccepted(head)
      let index = indexes[key] ?? groups.count
      if index == groups.count {
        indexes[key] = index
        groups.append((key, []))
      }
      groups[index].heads.append(head)
    }
    return groups
  }

  /// Returns the reasons to keep regular snapshots, for those that are kept. A snapshot that a
  /// repair wrote again without its lost data is the same backup as its original: they count once
  /// and have the same reasons, so that a repair does not displace other snapshots.
  fileprivate static func reasons(
    forRegular heads: [SnapshotHead], _ pins: Set<SnapshotID>, _ terms: RetentionTerms
  ) -> [SnapshotID: [KeepReason]] {
    let ordered = heads.sortedByAge()
    guard let newest = ordered.last, let oldest = ordered.first else { return [:] }
    var walk = RuleWalk(terms.rules, newest: newest.time, calendar: terms.calendar)
    let backups = BackupIdentities(ordered)
    var known: [SnapshotID: [KeepReason]] = [:]
    var reasons: [SnapshotID: [KeepReason]] = [:]
    for head in ordered.reversed() {
      let backup = backups[head]
      var found =
        known[backup] ?? walk.reasons(for: head, isOldest: backup == backups[oldest])
      known[backup] = found
      if pins.contains(head.id) { found.append(.pinned) }
      if !found.isEmpty { reasons[head.id] = found }
    }
    return reasons
  }

  /// Returns the reason to keep a snapshot that is automatic or dated in the future; empty if there
  /// is none.
  fileprivate static func reason(
    forOther head: SnapshotHead, _ terms: RetentionTerms
  ) -> [KeepReason] {
    if head.time > terms.now { return [.future] }
    guard let seconds = terms.retain(head) else { return [.retainUnknown] }
    return terms.now.since(head.time) < Double(seconds) ? [.retain(seconds: seconds)] : []
  }
}

extension RetentionPlan.Group {
  /// Applies rules to the snapshots of a group.
  fileprivate init(
    _ key: SnapshotGrouping.Key, _ heads: [SnapshotHead], pins: Set<SnapshotID>,
    terms: RetentionTerms
  ) {
    let isSubject = { (head: SnapshotHead) in head.isRegular && head.time <= terms.now }
    let regular = heads.filter(isSubject)
    var reasons = RetentionPlan.reasons(forRegular: regular, pins, terms)
    isRefused = !terms.mayEmptyGroups && !regular.isEmpty && reasons.isEmpty
    if isRefused { for head in regular { reasons[head.id] = [.refused] } }
    self.key = key
    entries = heads.map { head in
      if isSubject(head) {
        return RetentionPlan.Entry(head: head, reasons: reasons[head.id] ?? [])
      }
      let pinned: [KeepReason] = pins.contains(head.id) ? [.pinned] : []
      return RetentionPlan.Entry(
        head: head, reasons: RetentionPlan.reason(forOther: head, terms) + pinned)
    }
  }
}

extension SnapshotHead {
  /// Whether the rules apply to it: the others were made automatically by an operation, and the
  /// policy determines how long they are kept. A reason of a later version counts as regular.
  package var isRegular: Bool {
    ![.preUpdate, .preRestore, .preRollback, .uninstall].contains(reason)
  }
}

// MARK: - By name

extension RetentionPlan {
  /// Removes the named snapshots and keeps all others.
  init(
    _ heads: [SnapshotHead], removing ids: Set<SnapshotID>, grouping: SnapshotGrouping,
    isAccepted: (SnapshotHead) -> Bool
  ) {
    groups = Self.grouped(heads, by: grouping, isAccepted).map { key, heads in
      Group(
        key: key,
        entries: heads.map {
          Entry(head: $0, reasons: ids.contains($0.id) ? [] : [.notNamed])
        }, isRefused: false)
    }
  }

  /// Returns the groups from which the plan removes the last regular snapshot. A snapshot dated
  /// after `now` does not protect the others: it counts only in a group without others.
  func emptied(at now: Timestamp) -> [Group] {
    groups.filter { group in
      let regular = group.entries.filter(\.head.isRegular)
      let past = regular.filter { $0.head.time <= now }
      let counted = past.isEmpty ? regular : past
      return !counted.isEmpty && !counted.contains(where: \.isKept)
    }
  }
}

/// The backups that snapshots record: a snapshot that `repair snapshots` wrote records the backup
/// of its original. In another repository that has copies of both, only the run shows that they are
/// the same backup; for copies without a sequence, only their common original does.
struct BackupIdentities {
  private var originals: [SnapshotID: SnapshotID] = [:]

  /// The run of a program that made a snapshot. Repairs and copies keep its members.
  private struct Run: Hashable {
    let source: Digest
    let sequence: UInt64
    let time: Timestamp
  }

  /// Finds the originals among snapshots. Originals that are not among them are ignored.
  init(_ heads: [SnapshotHead]) {
    let ids = Set(heads.map(\.id))
    var firsts: [Run: SnapshotID] = [:]
    var copies: [Snapshot.Original: SnapshotID] = [:]
    for head in heads {
      if let original = head.original?.id, ids.contains(original) {
        originals[head.id] = original
      } else if head.sequence > 0 {
        let run = Run(source: head.source, sequence: head.sequence, time: head.time)
        if let first = firsts[run] { originals[head.id] = first } else { firsts[run] = head.id }
      } else if let original = head.original {
        if let first = copies[original] { originals[head.id] = first }
        copies[original] = copies[original] ?? head.id
      }
    }
  }

  /// The first original of a snapshot: itself if it is not a copy. Ids are hashes, so only a
  /// hostile repository can appear to contain a cycle, which ends the search.
  subscript(head: SnapshotHead) -> SnapshotID {
    var (id, steps) = (head.id, originals.count)
    while let original = originals[id], steps > 0 { (id, steps) = (original, steps - 1) }
    return id
  }
}
