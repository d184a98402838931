internal import DatabaseCapture
internal import DeviceTransaction
internal import SystemIO

/// Files of a database that are not restored, and the files that are kept with them.
extension RestorePlanner {
  mutating func block(_ number: Int, _ remark: String) {
    plan.blocked.append(PathRemark(path: plan.shownPath(number), remark: remark))
  }

  /// Keeps the logs and journals of files that cannot be restored.
  mutating func leaveCompanions(of blocked: [ByteString], _ files: DirectoryFiles) {
    for name in blocked {
      for number in Self.companions.compactMap({ files.entries[name.followed(by: $0)] })
      where plan.tree.entries[number].action.isWritten {
        leave(number)
        block(number, "it belongs to '\(name)', which cannot be restored")
      }
    }
  }

  /// Keeps the logs and journals whose existing database is not in the snapshot or is not restored.
  mutating func leaveLoneCompanions(_ files: DirectoryFiles) {
    let companions = files.entries.filter { $0.key.databaseOfCompanion != nil }
    for (name, number) in companions.sorted(by: { $0.key < $1.key })
    where plan.tree.entries[number].action.isWritten {
      guard let database = name.databaseOfCompanion, files.entries[database] == nil,
        !files.blocked.contains(database), files.there?.contains(database) != false
      else { continue }
      leaveAlone(number, named: name, in: files.directory)
    }
  }

  /// Keeps a log or a journal that would be restored beside an existing database.
  mutating func leaveAlone(_ number: Int, named name: ByteString, in directory: Int) {
    guard let (database, member) = DatabaseMember.owner(of: name), member != .sharedMemory,
      (try? isFile(database, in: directory)) ?? true,
      member == .log || mayBeDatabase(database, in: directory)
    else { return }
    leave(number)
    block(number, "the existing '\(database)' is not restored with it")
  }

  /// Removes an entry and its later hard links from the entries to write.
  mutating func leave(_ number: Int) {
    let entry = plan.tree.entries[number]
    guard entry.action.isWritten else { return }
    var totals = RestoreTotals()
    totals.count(entry.kind, size: entry.size)
    if entry.action == .create {
      plan.creates.subtract(totals)
    } else {
      plan.replaces.subtract(totals)
      plan.leaves.add(totals)
    }
    plan.tree.update(number) { $0.action = .leave }
    keepDirectory(inPlaceOf: number)
    guard let group = groups.removeValue(forKey: number) else { return }
    // Hard links that follow have the content themselves.
    leaders[group] = nil
    for other in followers.removeValue(forKey: number) ?? []
    where plan.tree.entries[other].action.isWritten {
      leave(other)
      // A link in a directory that is already planned may belong to a unit there.
      dissolve(unitOf: other)
      block(other, "it is a hard link to '\(plan.tree.name(number))', which is kept")
    }
  }

  /// Keeps a directory that the entry would have replaced, with everything in it.
  private mutating func keepDirectory(inPlaceOf number: Int) {
    guard plan.tree.entries[number].changesKind,
      let place = replaced.place(of: number, in: plan.deletions, keys: { [$0.replacement ?? -1] })
    else { return }
    withdrawDeletion(place)
  }

  /// Keeps a database of which a file is not restored.
  private mutating func dissolve(unitOf number: Int) {
    guard let unit = units.place(of: number, in: plan.databases, keys: { $0.members }),
      !plan.databases[unit].isWithdrawn
    else { return }
    plan.databases[unit].isWithdrawn = true
    let database = plan.databases[unit]
    for child in database.children {
      orphanedSidecars.remove(child)
      if let place = deleted.place(of: child, in: plan.deletions, keys: { [$0.child] }) {
        withdrawDeletion(place)
      }
    }
    for member in database.members where plan.tree.entries[member].action.isWritten {
      leave(member)
      block(member, JournalStep.brokenItemReason)
    }
  }

  private mutating func withdrawDeletion(_ place: Int) {
    guard !plan.deletions[place].isWithdrawn else { return }
    plan.deletions[place].isWithdrawn = true
    plan.deletes.subtract(plan.deletions[place].totals)
  }

  /// Removes everything withdrawn from the plan.
  mutating func dropWithdrawn() {
    plan.deletions.removeAll { $0.isWithdrawn }
    plan.databases.removeAll { $0.isWithdrawn }
  }
}
