internal import SystemIO

/// Databases are placed and taken back as wholes.
extension RestorePlan {
  /// What has its place with its database.
  var databaseMembers: Set<Int> { Set(databases.flatMap(\.members)) }

  /// A database without its log, or beside another one's, is damaged: it comes whole, or what is there
  /// of it stays. Where nothing is there it is told what it comes without.
  func settleBrokenDatabases(_ findings: RestoreFindings) {
    for database in databases where database.isBroken(findings) { database.fail(findings) }
    tellOfLostLogs(findings)
  }

  private func tellOfLostLogs(_ findings: RestoreFindings) {
    var lost: [DirectoryChild: ByteString] = [:]
    for (number, entry) in tree.entries.enumerated()
    where entry.kind == .file && findings.isUnmade(number) {
      let name = tree.name(number)
      guard let database = name.databaseOfCompanion else { continue }
      lost[DirectoryChild(directory: Int(entry.parent), name: database)] = name
    }
    if lost.isEmpty { return }
    for (number, entry) in tree.entries.enumerated()
    where entry.kind == .file && entry.action.isWritten && !findings.isUnmade(number) {
      let child = DirectoryChild(directory: Int(entry.parent), name: tree.name(number))
      guard let log = lost[child] else { continue }
      findings.remark(
        number,
        "it comes without '\(log)', which could not be restored: it may lack what was written last, "
          + "or be damaged")
    }
  }

  // MARK: - Deletions

  /// What goes by itself: what lies beside a database goes with its unit.
  var removals: [PlannedDeletion] {
    let strays = Set(databases.flatMap(\.children))
    return deletions.filter { deletion in
      deletion.replacement == nil && !strays.contains(deletion.child)
    }
  }

  /// What lies beside databases that come, is of another state of them, and is not to be deleted: it is
  /// moved away with what gives way.
  public var displaced: [PathRemark] { displaced(besides: []) }

  /// The same without that of databases that stay, by their numbers.
  func displaced(besides staying: Set<Int>) -> [PathRemark] {
    if databases.isEmpty { return [] }
    let deleted = Set(deletions.map(\.child))
    return databases.enumerated().filter { !staying.contains($0.offset) }.flatMap { _, database in
      database.children.filter { !deleted.contains($0) }.map { child in
        PathRemark(
          path: tree.path(child.directory, from: place.shownDepth).appending(child.name),
          remark: "it is of another state of '\(database.name)'")
      }
    }
  }

  /// What was to be deleted with databases: how much it was where they came, and where they did not,
  /// why it stayed.
  ///
  /// - Parameter staying: the databases, by their numbers, that stay as they are.
  func deletionsOfStrays(
    besides staying: Set<Int>
  ) -> (gone: RestoreTotals, spared: [PathRemark]) {
    let owners = Dictionary(
      databases.enumerated().flatMap { unit, database in database.children.map { ($0, unit) } },
      uniquingKeysWith: { first, _ in first })
    var (gone, spared) = (RestoreTotals(), [PathRemark]())
    for deletion in deletions {
      guard let unit = owners[deletion.child] else { continue }
      if staying.contains(unit) {
        let database = databases[unit]
        let path = tree.path(deletion.directory, from: place.shownDepth).appending(deletion.name)
        spared.append(
          PathRemark(path: path, remark: "it belongs to '\(database.name)', which stays"))
      } else {
        gone.add(deletion.totals)
      }
    }
    return (gone, spared)
  }
}
