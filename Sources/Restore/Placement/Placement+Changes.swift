internal import DatabaseCapture
internal import DeviceTransaction
internal import SystemIO

// Existing entries that changed after the restore was planned, examined immediately before they are
// replaced.
extension Placement {
  private static let changedReason =
    "the existing entry changed after the restore was planned, and is kept"

  private static func appearedReason(_ name: ByteString) -> String {
    "'\(name)' appeared beside it after the restore was planned; both are kept"
  }

  /// Returns the reason why an existing entry is kept, or nil if it may be replaced.
  mutating func reasonToKeep(_ number: Int) throws(SystemError) -> String? {
    if try hasChanged(number) { return Self.changedReason }
    let entry = plan.tree.entries[number]
    // A program can have it open as a database only if a file is there.
    guard entry.kind == .file, entry.action == .replace else { return nil }
    let name = plan.tree.name(number)
    let late = try target.withDirectory(of: number) { directory throws(SystemError) in
      try directory.companion(of: name, besides: [])
    }
    return late.map { Self.appearedReason($0) }
  }

  /// Whether the existing entry, which is not kept anywhere, is another one than at the plan, or
  /// was written to since. One that no longer exists cannot be lost.
  private mutating func hasChanged(_ number: Int) throws(SystemError) -> Bool {
    guard trash == nil, let planned = plan.tree.existing(number) else { return false }
    let name = plan.tree.name(number)
    return try target.withDirectory(of: number) { directory throws(SystemError) in
      try directory.statusIfPresent(name).map { PlannedTree.Existing($0) != planned } ?? false
    }
  }

  /// Keeps an existing entry.
  func keep(_ number: Int, _ reason: String) throws(OperationError) {
    guard plan.target.name == nil else {
      throw OperationError(
        .failed, "cannot restore '\(plan.shownPath(number))': \(reason)",
        hint: "run the same command again to replace it")
    }
    run.findings.fail(number, reason)
    run.skip(below: number)
  }

  // MARK: - Databases

  /// Whether a database is kept because one of its files has changed.
  mutating func keepsChanged(_ database: RestorePlan.Database) -> Bool {
    // A file that cannot be examined cannot be replaced either, which is reported then.
    var changed: [Int] = []
    for member in database.members where (try? hasChanged(member)) == true {
      changed.append(member)
    }
    for member in changed { run.findings.fail(member, Self.changedReason) }
    if changed.isEmpty {
      guard let (name, isNew) = changedFile(of: database) else { return false }
      let reason =
        isNew
        ? Self.appearedReason(name)
        : "'\(name)' changed after the restore was planned; the existing files are kept"
      if let number = database.members.last {
        run.findings.fail(number, reason)
      } else {
        run.findings.remark(database.directory, "'\(database.name)' is unchanged: \(reason)")
      }
    }
    run.findings.fail(database)
    return true
  }

  /// Returns a file of a database that no entry replaces and that has changed since the plan, and
  /// whether it appeared since. It would end up beside the restored files, or be deleted together
  /// with commits that exist nowhere else.
  private mutating func changedFile(
    of database: RestorePlan.Database
  ) -> (name: ByteString, isNew: Bool)? {
    let orphans = Set(database.orphanedSidecars)
    let known = orphans.union(database.existing.keys).union(
      database.members.map { plan.tree.name($0) })
    let losesChanges = plan.request.keepsChanges
    return try? target.within(database.directory) {
      directory throws(SystemError) -> (name: ByteString, isNew: Bool)? in
      for (name, planned) in database.existing.sorted(by: { $0.key < $1.key }) {
        let status = try directory.statusIfPresent(name)
        if orphans.contains(name) {
          // In a device it is moved to the trash unchanged. An index has no data of its own.
          guard losesChanges, !name.isSharedMemory, let status else { continue }
          if PlannedTree.Existing(status) != planned { return (name, false) }
        } else if status.map({ PlannedTree.Existing($0) }) != planned {
          return (name, false)
        }
      }
      return try directory.companion(of: database.name, besides: known).map { ($0, true) }
    }
  }
}

extension Directory {
  /// Returns the name of a log or a journal beside a database other than the given ones, or nil if
  /// there is none. Beside a file that is not a database, only a log counts.
  fileprivate func companion(
    of name: ByteString, besides known: Set<ByteString>
  ) throws(SystemError) -> ByteString? {
    for member in [DatabaseMember.log, .journal] {
      let companion = name.followed(by: member.suffix)
      guard companion.count <= Int(UInt8.max), !known.contains(companion),
        try statusIfPresent(companion)?.kind == .file, member == .log || mayBeDatabase(name)
      else { continue }
      return companion
    }
    return nil
  }
}
