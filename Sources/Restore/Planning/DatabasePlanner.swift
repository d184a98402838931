internal import ArchiveStore
internal import DatabaseCapture
internal import SystemIO

/// Plans the databases in a directory that exist in the target and have a file that a restore
/// changes: a database, its log and its journal are restored together or not at all.
struct DatabasePlanner {
  static let companions = [DatabaseMember.log, .journal].map(\.suffix)
  static let sidecars = [DatabaseMember.log, .journal, .sharedMemory].map(\.suffix)

  /// The files of a database other than itself.
  private struct Companions {
    /// The entries of its log and its journal.
    var members: [Int] = []
    /// The existing files beside it.
    var present: [ByteString] = []
    /// The reason why the database cannot be restored.
    var conflict: String?
  }

  let directory: Int
  /// The depth of the directory.
  let depth: UInt16
  /// The numbers of the snapshot's entries by name, as in `DatabaseNames`.
  let entries: [ByteString: Int]
  /// The existing names, as in `DatabaseNames`; nil if each name is looked up.
  let there: Set<ByteString>?
  /// The snapshot's files that cannot be restored because of a conflict with an existing entry.
  let blocked: Set<ByteString>
  /// The names in the snapshot that cannot be read.
  let lost: UnreadableRanges
  /// Whether the files are a directory's, rather than a single requested one with its companions.
  let isWhole: Bool

  /// Groups the databases in a merged directory if a file of them changes.
  static func settleAll(
    in directory: RestorePlanner.OpenDirectory, _ draft: inout PlanDraft,
    beside target: inout PresentTarget
  ) {
    let entry = draft.plan.tree.entries[directory.number]
    guard entry.isMerged, !directory.files.isEmpty else { return }
    let names = DatabaseNames(in: directory, draft, beside: &target)
    let entries = names.entries
    let planner = DatabasePlanner(
      directory: directory.number, depth: entry.depth, entries: entries,
      there: names.there, blocked: Set(directory.blocked), lost: directory.lost,
      isWhole: true)
    planner.withdrawCompanions(of: directory.blocked, in: &draft)
    planner.withdrawUnpairedCompanions(in: &draft, beside: &target)
    var seen: Set<Int> = []
    // A database sorts before its log; and a log is not a database.
    for (name, number) in entries.sorted(by: { $0.key < $1.key }) where !seen.contains(number) {
      let found = planner.companions(of: name, draft, beside: &target)
      if found.members.isEmpty, found.present.isEmpty, found.conflict == nil { continue }
      seen.formUnion(found.members)
      planner.settle(number, with: found, in: &draft, beside: &target)
    }
  }

  /// Plans a single database, the only one of the files.
  func settle(
    single number: Int, in draft: inout PlanDraft, beside target: inout PresentTarget
  ) {
    let found = companions(of: draft.plan.tree.name(number), draft, beside: &target)
    settle(number, with: found, in: &draft, beside: &target)
    withdrawUnpaired(number, in: &draft, beside: &target)
  }

  /// Returns the kept database that a log, a journal or an index in a directory belongs to; nil if
  /// there is none. Of the names that the snapshot does not have, those in `gone` are deleted.
  static func remainingDatabase(
    with child: RestorePlan.Child, lacking names: Set<ByteString>, gone: Set<ByteString>,
    in draft: borrowing PlanDraft, _ target: inout PresentTarget
  ) -> ByteString? {
    // A database that cannot be examined may exist.
    guard let (database, _) = DatabaseMember.owner(of: child.name),
      (try? target.isFile(database, at: draft.plan.tree.entries[child.directory].depth)) ?? true
    else { return nil }
    if names.contains(database) { return gone.contains(database) ? nil : database }
    // A stray file of a restored database is removed together with the previous database.
    return draft.orphanedSidecars.contains(child) ? nil : database
  }

  // MARK: - Looking

  private func companions(
    of name: ByteString, _ draft: borrowing PlanDraft, beside target: inout PresentTarget
  ) -> Companions {
    var found = Companions()
    for suffix in Self.sidecars where name.count + suffix.count <= Int(UInt8.max) {
      let sidecar = name.followed(by: suffix)
      let entry = entries[sidecar]
      var isThere = there?.contains(sidecar) != false
      if blocked.contains(sidecar) {
        found.conflict = "it is not restored without '\(sidecar)'; the existing files are kept"
      }
      do throws(SystemError) {
        if isThere { isThere = try target.isFile(sidecar, at: depth) }
        // As in a backup, a log identifies a database; a journal or an index alone does not.
        if isThere, found.present.isEmpty, suffix != Self.sidecars[0] {
          isThere = target.mayBeDatabase(name, at: depth)
        }
      } catch {
        isThere = false
        found.conflict = "cannot examine '\(sidecar)' next to it: \(error.reason)"
      }
      if entry == nil, lost.contains(sidecar),
        isThere || isReplaced(name, lacking: suffix, by: draft, beside: &target)
      {
        found.conflict = "'\(sidecar)' may be lost in the repository; the existing files are kept"
      }
      if isThere { found.present.append(sidecar) }
      // An index is not part of a database, even if the snapshot has a file of its name.
      if let entry, Self.companions.contains(suffix) { found.members.append(entry) }
    }
    return found
  }

  /// Whether an existing database would be replaced by one that may lack its log or its journal.
  private func isReplaced(
    _ name: ByteString, lacking suffix: [UInt8], by draft: borrowing PlanDraft,
    beside target: inout PresentTarget
  ) -> Bool {
    guard Self.companions.contains(suffix), let number = entries[name],
      draft.plan.tree.entries[number].action == .replace,
      (try? target.isFile(name, at: depth)) ?? true
    else { return false }
    return target.mayBeDatabase(name, at: depth)
  }

  // MARK: - Deciding

  private func settle(
    _ number: Int, with found: Companions, in draft: inout PlanDraft,
    beside target: inout PresentTarget
  ) {
    let (name, mode) = (draft.plan.tree.name(number), draft.mode)
    let isThere = (try? target.isFile(name, at: depth)) ?? true
    let members = found.members + [number]
    if mode == .ifNewer { decideByTime(members, of: name, with: found, in: &draft, &target) }
    // If one of the existing files is kept, all are.
    let stays = members.contains { draft.plan.tree.entries[$0].action == .leave }
    if stays || found.conflict != nil {
      for member in members { draft.withdraw(member) }
      if let conflict = found.conflict {
        draft.block(number, conflict)
      } else if !isThere {
        draft.block(number, "its existing files belong to another state and are kept")
      }
      return
    }
    let orphanedSidecars = found.present.filter { entries[$0] == nil }
    let written = members.filter { draft.plan.tree.entries[$0].action.isWritten }
    let hasOldLog = orphanedSidecars.contains { !$0.isSharedMemory }
    if written.isEmpty, !hasOldLog || mode == .never || mode == .ifNewer { return }
    let unchanged = members.filter { draft.plan.tree.entries[$0].action == .same }
    if written == [number], unchanged.isEmpty, orphanedSidecars.isEmpty { return }
    var database = RestorePlan.Database(
      directory: directory, name: name, isPresent: isThere || !found.present.isEmpty,
      members: written, entry: written.contains(number) ? number : nil,
      orphanedSidecars: orphanedSidecars)
    for name in unchanged.map({ draft.plan.tree.name($0) }) + orphanedSidecars {
      database.existing[name] = target.existing(name, at: depth)
    }
    draft.append(database)
  }

  /// Decides with `if-newer` about a database, its log and its journal together, including those
  /// that the snapshot does not have: the newest stored file is compared with the newest existing
  /// one. The database's own time means little while the commits are in its log.
  private func decideByTime(
    _ members: [Int], of name: ByteString, with found: Companions, in draft: inout PlanDraft,
    _ target: inout PresentTarget
  ) {
    let there = found.present.filter { !$0.isSharedMemory }
    // A name with a journal's suffix does not make the file beside it a database.
    if there.isEmpty, !target.mayBeDatabase(name, at: depth) { return }
    // The existing files are as stored, and the missing ones are created.
    let isPart = members.allSatisfy {
      [.same, .create].contains(draft.plan.tree.entries[$0].action)
    }
    if isPart, there.allSatisfy({ entries[$0] != nil }) { return }
    var present: Timestamp?
    for name in [name] + there {
      guard let time = target.modified(name, at: depth) else { continue }
      present = present.map { max($0, time) } ?? time
    }
    guard let present, let stored = members.map({ draft.plan.tree.entries[$0].modified }).max()
    else { return }
    for member in members {
      if present < stored {
        draft.replaceAfterAll(member, in: isWhole ? directory : nil)
      } else {
        draft.withdraw(member)
      }
    }
  }

  // MARK: - Files that are not restored

  /// Keeps the logs and journals of files that cannot be restored.
  private func withdrawCompanions(of blocked: [ByteString], in draft: inout PlanDraft) {
    for name in blocked {
      for number in Self.companions.compactMap({ entries[name.followed(by: $0)] })
      where draft.plan.tree.entries[number].action.isWritten {
        draft.withdraw(number)
        draft.block(number, "it belongs to '\(name)', which cannot be restored")
      }
    }
  }

  /// Keeps the logs and journals whose existing database is not in the snapshot or is not restored.
  private func withdrawUnpairedCompanions(
    in draft: inout PlanDraft, beside target: inout PresentTarget
  ) {
    let companions = entries.filter { $0.key.databaseOfCompanion != nil }
    for (name, number) in companions.sorted(by: { $0.key < $1.key })
    where draft.plan.tree.entries[number].action.isWritten {
      guard let database = name.databaseOfCompanion, entries[database] == nil,
        !blocked.contains(database), there?.contains(database) != false
      else { continue }
      withdrawUnpaired(number, in: &draft, beside: &target)
    }
  }

  /// Keeps a log or a journal that would be restored beside an existing database.
  private func withdrawUnpaired(
    _ number: Int, in draft: inout PlanDraft, beside target: inout PresentTarget
  ) {
    guard let (database, member) = DatabaseMember.owner(of: draft.plan.tree.name(number)),
      member != .sharedMemory, (try? target.isFile(database, at: depth)) ?? true,
      member == .log || target.mayBeDatabase(database, at: depth)
    else { return }
    draft.withdraw(number)
    draft.block(number, "the existing '\(database)' is not restored with it")
  }
}

/// The names in a directory that can belong to a database of several files: the logs, journals and
/// indexes, and the files that they would belong to. The other files of the directory, perhaps a
/// million, need not be remembered.
struct DatabaseNames {
  /// The numbers of the snapshot's entries by name.
  private(set) var entries: [ByteString: Int] = [:]
  /// The existing names; nil if the directory cannot be listed, and each name is looked up.
  private(set) var there: Set<ByteString>?

  /// Finds the names in a directory. If names of the snapshot are lost, or the existing ones are
  /// unknown, each file can belong to a database, and all names are found.
  init(
    in directory: RestorePlanner.OpenDirectory, _ draft: borrowing PlanDraft,
    beside target: inout PresentTarget
  ) {
    let depth = draft.plan.tree.entries[directory.number].depth
    var databases = Set(directory.blocked.compactMap { DatabaseMember.owner(of: $0)?.database })
    for number in directory.files {
      let name = draft.plan.tree.name(Int(number))
      guard let database = DatabaseMember.owner(of: name)?.database else { continue }
      entries[name] = Int(number)
      databases.insert(database)
    }
    let isWhole = !directory.lost.isEmpty
    there = target.names(at: depth) { name in
      isWhole || DatabaseMember.mayBeSidecar(name)
        || !databases.isEmpty && databases.contains(ByteString(name))
    }
    for name in there ?? [] {
      if let database = DatabaseMember.owner(of: name)?.database { databases.insert(database) }
    }
    let isEach = isWhole || there == nil
    for number in directory.files where isEach || !databases.isEmpty {
      let name = draft.plan.tree.name(Int(number))
      if isEach || databases.contains(name) { entries[name] = Int(number) }
    }
  }
}
