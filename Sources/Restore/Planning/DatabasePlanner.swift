internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceTransaction
internal import SystemIO

/// Plans databases of which a restore changes a file where another one exists.
extension RestorePlanner {
  static let companions = [DatabaseMember.log, .journal].map(\.suffix)
  private static let sidecars = [DatabaseMember.log, .journal, .sharedMemory].map(\.suffix)

  /// The files of a directory that may belong to databases.
  struct DirectoryFiles {
    let directory: Int
    /// The numbers of the snapshot's entries by name.
    let entries: [ByteString: Int]
    /// The existing names; nil if the directory cannot be listed, and each name is looked up.
    let there: Set<ByteString>?
    /// The snapshot's files that cannot be restored because of a conflict with an existing entry.
    let blocked: Set<ByteString>
    /// The names in the snapshot that cannot be read.
    let lost: UnreadableRanges
  }

  /// The files of a database other than itself.
  struct Companions {
    /// The entries of its log and its journal.
    var members: [Int] = []
    /// The existing files beside it.
    var present: [ByteString] = []
    /// The reason why the database cannot be restored.
    var conflict: String?
  }

  /// Groups the databases in a merged directory into units if a file of them changes.
  mutating func settleDatabases(in directory: OpenDirectory) {
    guard plan.tree.entries[directory.number].isMerged, !directory.files.isEmpty else { return }
    let entries = Dictionary(
      directory.files.map { (plan.tree.name($0), $0) }, uniquingKeysWith: { first, _ in first })
    let files = DirectoryFiles(
      directory: directory.number, entries: entries, there: namesThere(in: directory.number),
      blocked: Set(directory.blocked), lost: directory.lost)
    leaveCompanions(of: directory.blocked, files)
    leaveLoneCompanions(files)
    var seen: Set<Int> = []
    // A database sorts before its log; and a log is not a database.
    for (name, number) in entries.sorted(by: { $0.key < $1.key }) where !seen.contains(number) {
      let found = companions(of: name, files)
      if found.members.isEmpty, found.present.isEmpty, found.conflict == nil { continue }
      seen.formUnion(found.members)
      settle(number, with: found, in: files)
    }
  }

  /// Does the same for a single database: its log and its journal are restored with it, and files
  /// of another state beside it are moved away.
  mutating func settleDatabase(_ number: Int, in directory: Int) throws {
    let name = plan.tree.name(number)
    var entries = [name: number]
    var blocked: Set<ByteString> = []
    var lost = UnreadableRanges()
    for suffix in Self.companions {
      let companion = name.followed(by: suffix)
      guard let stored = try storedCompanion(suffix, named: companion, in: directory, &lost) else {
        continue
      }
      guard companion.count <= Int(UInt8.max),
        let added = try add(stored, named: companion, in: directory)
      else {
        blocked.insert(companion)
        continue
      }
      // The request gives no overwrite mode, so the existing file is kept.
      if plan.request.overwrite == nil, plan.tree.entries[added].action == .replace {
        plan.tree.update(added) { $0.isMovedAside = true }
      }
      entries[companion] = added
    }
    let files = DirectoryFiles(
      directory: directory, entries: entries, there: nil, blocked: blocked, lost: lost)
    settle(number, with: companions(of: name, files), in: files)
  }

  /// Returns the log or the journal of the requested file. If damage hides whether there is one,
  /// that is recorded and the file itself can still be restored.
  private mutating func storedCompanion(
    _ suffix: [UInt8], named companion: ByteString, in directory: Int,
    _ lost: inout UnreadableRanges
  ) throws(StoreError) -> TreeEntry? {
    let path = plan.request.path.followed(by: suffix)
    do throws(StoreError) {
      let stored = try reader.entry(at: path, in: plan.snapshot.snapshot.tree)
      return stored?.node.kind == .file ? stored : nil
    } catch {
      guard error.kind == .damaged else { throw error }
      lost.add(.one(companion))
      let shown = plan.tree.path(directory, from: plan.place.shownDepth).appending(companion)
      plan.damaged.append(PathRemark(path: shown, remark: "it may exist: \(error.reason)"))
      return nil
    }
  }

  /// Returns the kept database that a log, a journal or an index in a directory belongs to; nil if
  /// there is none. Of the names that the snapshot does not have, those in `gone` are deleted.
  mutating func databaseThatStays(
    with name: ByteString, in directory: Int, lacking names: Set<ByteString>, gone: Set<ByteString>
  ) -> ByteString? {
    // A database that cannot be examined may exist.
    guard let (database, _) = DatabaseMember.owner(of: name),
      (try? isFile(database, in: directory)) ?? true
    else { return nil }
    if names.contains(database) { return gone.contains(database) ? nil : database }
    // A stray file of a restored database is removed together with the previous database.
    return orphanedSidecars.contains(RestorePlan.Child(directory: directory, name: name))
      ? nil : database
  }

  // MARK: - Looking

  private mutating func companions(
    of name: ByteString, _ files: DirectoryFiles
  ) -> Companions {
    var found = Companions()
    for suffix in Self.sidecars where name.count + suffix.count <= Int(UInt8.max) {
      let sidecar = name.followed(by: suffix)
      let entry = files.entries[sidecar]
      var isThere = files.there?.contains(sidecar) != false
      if files.blocked.contains(sidecar) {
        found.conflict = "it is not restored without '\(sidecar)'; the existing files are kept"
      }
      do throws(SystemError) {
        if isThere { isThere = try isFile(sidecar, in: files.directory) }
        // As in a backup, a log identifies a database; a journal or an index alone does not.
        if isThere, found.present.isEmpty, suffix != Self.sidecars[0] {
          isThere = mayBeDatabase(name, in: files.directory)
        }
      } catch {
        isThere = false
        found.conflict = "cannot examine '\(sidecar)' beside it: \(error.reason)"
      }
      if entry == nil, files.lost.contains(sidecar), isThere || givesWay(name, for: suffix, files) {
        found.conflict = "'\(sidecar)' may be lost in the repository; the existing files are kept"
      }
      if isThere { found.present.append(sidecar) }
      // An index is not part of a database, even if the snapshot has a file of its name.
      if let entry, Self.companions.contains(suffix) { found.members.append(entry) }
    }
    return found
  }

  /// Whether an existing database would be replaced by one that may lack its log or its journal.
  private mutating func givesWay(
    _ name: ByteString, for suffix: [UInt8], _ files: DirectoryFiles
  ) -> Bool {
    guard Self.companions.contains(suffix), let number = files.entries[name],
      plan.tree.entries[number].action == .replace,
      (try? isFile(name, in: files.directory)) ?? true
    else { return false }
    return mayBeDatabase(name, in: files.directory)
  }

  mutating func isFile(
    _ name: ByteString, in directory: Int
  ) throws(SystemError) -> Bool {
    try present?.ascend(to: Int(plan.tree.entries[directory].depth))
    let status = try present?.withDirectory { directory throws(SystemError) in
      try directory.statusIfPresent(name)
    }
    return (status ?? nil)?.kind == .file
  }

  /// Whether the existing file begins like a database. A missing or unreadable file may be one.
  mutating func mayBeDatabase(_ name: ByteString, in directory: Int) -> Bool {
    guard (try? isFile(name, in: directory)) == true else { return true }
    let hasMagic = try? present?.withDirectory { directory in
      try DatabaseUnit.hasMagic(directory.fileUntouched(name))
    }
    return hasMagic.flatMap { $0 } ?? true
  }

  private mutating func namesThere(in directory: Int) -> Set<ByteString>? {
    guard (try? present?.ascend(to: Int(plan.tree.entries[directory].depth))) != nil else {
      return nil
    }
    return try? present?.withDirectory { directory in Set(try directory.names()) }
  }

  // MARK: - Deciding

  private mutating func settle(
    _ number: Int, with found: Companions, in files: DirectoryFiles
  ) {
    let name = plan.tree.name(number)
    let isThere = (try? isFile(name, in: files.directory)) ?? true
    let members = found.members + [number]
    if mode == .ifNewer { decideByTime(members, of: name, with: found, in: files) }
    // If one of the existing files is kept, all are.
    let stays = members.contains { plan.tree.entries[$0].action == .leave }
    if stays || found.conflict != nil {
      for member in members { leave(member) }
      if let conflict = found.conflict {
        block(number, conflict)
      } else if !isThere {
        block(number, "its existing files belong to another state and are kept")
      }
      return
    }
    let orphanedSidecars = found.present.filter { files.entries[$0] == nil }
    let written = members.filter { plan.tree.entries[$0].action.isWritten }
    let hasOldLog = orphanedSidecars.contains { !$0.isSharedMemory }
    if written.isEmpty, !hasOldLog || mode == .never || mode == .ifNewer { return }
    if written == [number], orphanedSidecars.isEmpty { return }
    plan.databases.append(
      RestorePlan.Database(
        directory: files.directory, name: name, isPresent: isThere || !found.present.isEmpty,
        members: written, entry: written.contains(number) ? number : nil,
        orphanedSidecars: orphanedSidecars))
    self.orphanedSidecars.formUnion(plan.databases.last?.children ?? [])
  }
}

extension ByteString {
  func followed(by suffix: [UInt8]) -> ByteString { ByteString(bytes + suffix) }

  /// Whether it is the name of a database's index of its log, which only that database uses.
  var isSharedMemory: Bool { bytes.suffix(4).elementsEqual(DatabaseMember.sharedMemory.suffix) }

  /// The database that a log or a journal of this name belongs to, or nil if it is neither.
  var databaseOfCompanion: ByteString? {
    guard let owner = DatabaseMember.owner(of: self), owner.member != .sharedMemory else {
      return nil
    }
    return owner.database
  }
}

/// The choice of the newer of two states of a database.
extension RestorePlanner {
  /// Decides with `if-newer` about a database, its log and its journal together, including those
  /// that the snapshot does not have: the newest stored file is compared with the newest existing
  /// one. The database's own time says little while its log has the commits.
  mutating func decideByTime(
    _ members: [Int], of name: ByteString, with found: Companions, in files: DirectoryFiles
  ) {
    let there = found.present.filter { !$0.isSharedMemory }
    // A name with a journal's suffix does not make the file beside it a database.
    if there.isEmpty, !mayBeDatabase(name, in: files.directory) { return }
    // The existing files are as stored, and the missing ones are created.
    let isPart = members.allSatisfy { [.same, .create].contains(plan.tree.entries[$0].action) }
    if isPart, there.allSatisfy({ files.entries[$0] != nil }) { return }
    let present = ([name] + there).compactMap { time(of: $0, in: files.directory) }.max()
    guard let present, let stored = members.map({ plan.tree.entries[$0].modified }).max() else {
      return
    }
    for member in members {
      if present < stored { replaceAfterAll(member) } else { leave(member) }
    }
  }

  /// Returns the modification time of an existing file; nil if there is none.
  private mutating func time(of name: ByteString, in directory: Int) -> Timestamp? {
    guard (try? isFile(name, in: directory)) == true else { return nil }
    let status = try? present?.withDirectory { directory throws(SystemError) in
      try directory.status(name)
    }
    return status?.modified
  }

  /// Replaces a file that would have been kept because of its own time. A hard link to a kept file
  /// is not changed.
  private mutating func replaceAfterAll(_ number: Int) {
    let entry = plan.tree.entries[number]
    guard entry.action == .leave, plan.tree.leader(number) == nil else { return }
    var totals = RestoreTotals()
    totals.count(entry.kind, size: entry.size)
    plan.leaves.subtract(totals)
    plan.replaces.add(totals)
    let isMovedAside = mustBeKept(plan.tree.name(number))
    plan.tree.update(number) { planned in
      planned.action = .replace
      planned.isMovedAside = isMovedAside
    }
  }
}
