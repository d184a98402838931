internal import DeviceTransaction
internal import SystemIO

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
