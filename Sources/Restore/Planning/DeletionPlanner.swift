internal import ArchiveStore
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Plans the deletions in a directory: of entries that the snapshot does not have, if requested,
/// except those that the snapshot recorded as excluded and those that the policy excludes from
/// backups; and of entries that the policy removes.
struct DeletionPlanner {
  /// The present entries that a restore may remove according to the policy.
  private struct PolicyRemovals: Sendable {
    /// The verdict on an entry that the snapshot does not have.
    enum Verdict { case keep, spare, removeParts, remove }

    private var facts = SpillableArray<Facts>()
    private var hasScan = false

    /// The facts about an entry of the scan.
    private struct Facts: OptionSet, Sendable, BitwiseCopyable {
      let rawValue: UInt8
      /// A topmost entry that the policy removes on restore.
      static let isRemoved = Facts(rawValue: 1)
      static let isAboveRemoved = Facts(rawValue: 2)
      /// An entry that the policy excludes from backups.
      static let isExcluded = Facts(rawValue: 4)
      static let isAboveExcluded = Facts(rawValue: 8)
      /// A directory with entries that keep it from being removed.
      static let isAboveKept = Facts(rawValue: 16)
    }

    /// Whether the policy removes no entry.
    private(set) var isEmpty = true

    init(_ request: RestoreRequest) {
      guard let rules = request.rules, let scan = rules.present else { return }
      hasScan = true
      facts = SpillableArray(repeating: [], count: scan.entries.count)
      let isWhole = rules.selection.isEmpty
      let sparesExcluded = request.deletes && !request.deletesExcluded
      let excluded = sparesExcluded ? scan.exclusions(for: rules.sparedBy) : nil
      for (index, entry) in scan.entries.enumerated() where index > 0 {
        if isWhole, entry.verdicts.keep.restore == .remove {
          isEmpty = false
          record(index, .isRemoved, above: .isAboveRemoved, in: scan)
        }
        if excluded?[index] == true {
          record(index, .isExcluded, above: .isAboveExcluded, in: scan)
        }
      }
      if !isEmpty { recordKept(in: scan) }
    }

    /// Records the directories that are removed except for entries in them with rules of their own.
    /// A single file that is never restored, such as a socket or the index of a log, keeps none.
    private mutating func recordKept(in scan: ContainerScan) {
      for (index, entry) in scan.entries.enumerated() where index > 0 {
        switch entry.verdicts.keep.restore {
        case .remove: break
        case .skip where entry.status.kind != .directory: break
        case .skip, .restore, .recreateEmpty, .regenerate:
          record(index, [], above: .isAboveKept, in: scan)
        }
      }
    }

    /// Records a fact about an entry, and another one about the directories above it.
    private mutating func record(
      _ index: Int, _ fact: Facts, above other: Facts, in scan: ContainerScan
    ) {
      facts[index].formUnion(fact)
      var at = index
      while at > 0 {
        at = Int(scan.entries[at].parent)
        if facts[at].contains(other) { return }
        facts[at].formUnion(other)
      }
    }

    /// Returns the verdict on an entry, by its index in the scan. `isAsked` is whether entries that
    /// the snapshot does not have are to be removed.
    func verdict(on index: Int?, isAsked: Bool) -> Verdict {
      // An entry created after the scan has no verdict.
      guard let index else { return isAsked && !hasScan ? .remove : .keep }
      let found = hasScan ? facts[index] : []
      if found.contains(.isRemoved), isAsked || !found.contains(.isAboveKept) { return .remove }
      guard isAsked else { return found.contains(.isAboveRemoved) ? .removeParts : .keep }
      if found.contains(.isExcluded), !found.contains(.isAboveRemoved) { return .spare }
      return found.isDisjoint(with: [.isAboveExcluded, .isAboveRemoved]) ? .remove : .removeParts
    }
  }

  private let request: RestoreRequest
  private let removals: PolicyRemovals
  private let unlistedExclusions: UnlistedExclusions
  private let sparedPaths: SparedPaths

  init(_ plan: RestorePlan) {
    request = plan.request
    removals = PolicyRemovals(plan.request)
    unlistedExclusions = UnlistedExclusions(plan)
    sparedPaths = SparedPaths(
      plan.snapshot.snapshot, deletesExcluded: plan.request.deletesExcluded)
  }

  /// Whether entries may be removed from the directories with a frame.
  func mayRemove(_ frame: RestoreSelector.Frame) -> Bool {
    request.deletes && frame.isInside || !removals.isEmpty
  }

  /// Plans the deletions in a directory. If names of the snapshot are lost, an existing entry may
  /// be one of them: then nothing is deleted, and the directory is reported.
  func planDeletions(
    _ unseen: Set<ByteString>, in directory: RestorePlanner.OpenDirectory,
    draft: inout PlanDraft, target: inout PresentTarget
  ) {
    let isAsked = request.deletes && directory.frame.isInside
    if directory.lost.isEmpty {
      planDeletions(
        unseen, in: directory.number, isAsked: isAsked, draft: &draft, target: &target)
    } else if isAsked {
      let reason = "some of its names in the snapshot cannot be read, so nothing in it is removed"
      draft.spare(draft.plan.shownPath(directory.number), reason)
    }
  }

  private func planDeletions(
    _ names: Set<ByteString>, in directory: Int, isAsked: Bool,
    draft: inout PlanDraft, target: inout PresentTarget
  ) {
    let depth = draft.plan.tree.entries[directory].depth
    let above = draft.path(directory)
    if isAsked, let remark = remarkToSpareAll(names, in: above, at: depth, target: &target) {
      return draft.spare(draft.plan.shownPath(directory), remark)
    }
    let scanned = names.isEmpty ? nil : draft.scanned?.index(of: above)
    // A database sorts before its log.
    var gone: Set<ByteString> = []
    for name in names.sorted() where !(depth == 0 && OwnNames.has(name)) {
      let index = scanned.flatMap { draft.scanned?.child(named: name, of: $0) }
      switch removals.verdict(on: index, isAsked: isAsked) {
      case .keep:
        // Otherwise it was created after the scan.
        if isAsked, index == nil, draft.scanned?.isUnlisted(at: above) == true {
          draft.block(above.appending(name), Self.unlistedReason)
        }
      case .spare:
        draft.spare(above.appending(name), "the policy excludes it from backups")
      case .removeParts:
        planParts(of: name, in: directory, isAsked: isAsked, draft: &draft, target: &target)
      case .remove:
        let child = RestorePlan.Child(directory: directory, name: name)
        if let database = DatabasePlanner.remainingDatabase(
          with: child, lacking: names, gone: gone, in: draft, &target)
        {
          draft.spare(
            above.appending(name), "it belongs to '\(database)', which is kept")
        } else if planDeletion(of: child, above, draft: &draft, target: &target) {
          gone.insert(name)
        }
      }
    }
  }

  /// Returns the remark on a directory of which nothing is deleted: a repository, or the control
  /// directory of a device that the snapshot has as well, with other content.
  private func remarkToSpareAll(
    _ names: Set<ByteString>, in path: ByteString, at depth: UInt16,
    target: inout PresentTarget
  ) -> String? {
    if names.contains(RepositoryDirectory.settings), target.isSparedRepository(at: depth) {
      return "another repository is there"
    }
    guard target.sparesOwnData, !names.isEmpty,
      path.components.contains(OwnNames.directory)
    else { return nil }
    return PresentEntries.ownDirectoryRemark
  }

  private static let unlistedReason =
    "its directory could not be read when the policy was applied, so it is not removed: run the "
    + "same command again"

  /// Plans to delete an entry. Returns false if it is kept, with a remark.
  private func planDeletion(
    of child: RestorePlan.Child, _ above: ByteString, draft: inout PlanDraft,
    target: inout PresentTarget
  ) -> Bool {
    let name = child.name
    do {
      let path = request.path.appending(above).appending(name)
      if let reason = sparedPaths.reasonToSpare(path) {
        throw PresentTarget.Conflict(reason: reason)
      }
      let totals = try target.totals(
        of: name, at: draft.plan.tree.entries[child.directory].depth)
      // The index of a restored database is never needed.
      let isIndex = name.isSharedMemory && draft.orphanedSidecars.contains(child)
      if totals.directories == 0, !isIndex, let reason = unlistedExclusions.reasonToSpare(path) {
        throw PresentTarget.Conflict(reason: reason)
      }
      draft.append(
        RestorePlan.Deletion(
          directory: child.directory, name: name, totals: totals, replacement: nil))
      return true
    } catch let conflict as PresentTarget.Conflict {
      draft.spare(above.appending(name), conflict.reason)
    } catch { block(above.appending(name), error, in: &draft) }
    return false
  }

  /// Keeps an entry that cannot be read completely: it may contain protected entries.
  private func block(_ path: ByteString, _ error: any Error, in draft: inout PlanDraft) {
    let reason = "its contents cannot be read, so it is not removed: "
    draft.block(path, reason + PresentTarget.Conflict.reason(error))
  }

  /// Plans the deletions in a directory that the snapshot does not have and of which a part is
  /// kept.
  private func planParts(
    of name: ByteString, in directory: Int, isAsked: Bool, draft: inout PlanDraft,
    target: inout PresentTarget
  ) {
    do throws(SystemError) {
      let inner = try target.names(
        below: name, at: draft.plan.tree.entries[directory].depth)
      let tree = TreeReference(draft.plan.snapshot.snapshot.tree.digest)
      let number = draft.plan.tree.append(
        TreeEntry(name: name, node: .directory(tree)), named: name, parent: directory,
        action: .leave, hasMetadata: false)
      draft.plan.tree.update(number) { $0.isMerged = true }
      planDeletions(inner, in: number, isAsked: isAsked, draft: &draft, target: &target)
    } catch { block(draft.path(directory).appending(name), error, in: &draft) }
  }
}
