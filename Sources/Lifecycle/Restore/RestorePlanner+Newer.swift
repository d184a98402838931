internal import SystemIO

/// Which of two states of a database is the newer one.
extension RestorePlanner {
  /// Decides with `if-newer` on a database, its log and its journal together, what the snapshot lacks
  /// of them among it: by the newest of them that is stored, and the newest that is there. The
  /// database's own time tells little while its log has the commits.
  mutating func decideByTime(
    _ members: [Int], of name: ByteString, _ found: Companions, _ files: DirectoryFiles
  ) {
    let there = found.present.filter { !$0.isSharedMemory }
    // A name that ends as a journal's does not make a database of the file beside it.
    if there.isEmpty, !mayBeDatabase(name, in: files.directory) { return }
    // What is there is as stored, and what is missing of it comes.
    let isPart = members.allSatisfy { [.same, .create].contains(plan.tree.entries[$0].action) }
    if isPart, there.allSatisfy({ files.entries[$0] != nil }) { return }
    let present = ([name] + there).compactMap { time(of: $0, in: files.directory) }.max()
    guard let present, let stored = members.map({ plan.tree.entries[$0].modified }).max() else {
      return
    }
    for member in members {
      if present < stored { takeUp(member) } else { leave(member) }
    }
  }

  /// When a file was last changed that is there; nothing where none is.
  private mutating func time(of name: ByteString, in directory: Int) -> Timestamp? {
    guard (try? isFile(name, in: directory)) == true else { return nil }
    let status = try? present?.withDirectory { directory throws(SystemError) in
      try directory.status(name)
    }
    return status?.modified
  }

  /// Has an entry come that was to be left for its own time. One that is left as it is another name of
  /// a file that stays is not one of these.
  private mutating func takeUp(_ number: Int) {
    let entry = plan.tree.entries[number]
    guard entry.action == .leave, plan.tree.leader(number) == nil else { return }
    var totals = RestoreTotals()
    totals.count(entry.kind, size: entry.size)
    plan.leaves.subtract(totals)
    plan.replaces.add(totals)
    let isPutAside = mustStay(plan.tree.name(number))
    plan.tree.update(number) { planned in
      planned.action = .replace
      planned.isPutAside = isPutAside
    }
  }
}
