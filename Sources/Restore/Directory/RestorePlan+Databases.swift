internal import DeviceTransaction
package import SystemIO

/// Databases, which are put in place and rolled back as units.
extension RestorePlan {
  /// The entries that are put in place with their database.
  var databaseMembers: Set<Int> { Set(databases.flatMap(\.members)) }

  /// Marks the databases that cannot be restored completely: a database without its log, or with
  /// another one's, is damaged, so the existing files are kept. If none exists, the database is
  /// restored and the missing log is reported.
  func settleBrokenDatabases(_ findings: RestoreFindings) {
    for database in databases where database.isBroken(findings) { database.fail(findings) }
    reportLostLogs(findings)
  }

  private func reportLostLogs(_ findings: RestoreFindings) {
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
        "'\(log)' could not be restored with it: it may lack the latest changes, "
          + "or be damaged")
    }
  }

  // MARK: - Deletions

  /// The deletions that are carried out by themselves; a file beside a database is deleted with its
  /// unit.
  var removals: [PlannedDeletion] {
    let orphanedSidecars = Set(databases.flatMap(\.children))
    return deletions.filter { deletion in
      deletion.replacement == nil && !orphanedSidecars.contains(deletion.child)
    }
  }

  /// Files that belong to another state of the restored databases and that the plan does not
  /// delete; they are moved away with the replaced files.
  package var displaced: [PathRemark] { displaced(besides: []) }

  /// Returns these files except those of databases that are kept, by their numbers.
  func displaced(besides staying: Set<Int>) -> [PathRemark] {
    if databases.isEmpty { return [] }
    let deleted = Set(deletions.map(\.child))
    return databases.enumerated().filter { !staying.contains($0.offset) }.flatMap { _, database in
      database.children.filter { !deleted.contains($0) }.map { child in
        PathRemark(
          path: tree.path(child.directory, from: place.shownDepth).appending(child.name),
          remark: "it belongs to another state of '\(database.name)'")
      }
    }
  }

  /// Returns the deletions planned with databases: the totals of those carried out, and the reasons
  /// for the others.
  ///
  /// - Parameter staying: the numbers of the databases that are kept unchanged.
  func deletionsOfOrphans(
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
          PathRemark(path: path, remark: "it belongs to '\(database.name)', which is kept"))
      } else {
        gone.add(deletion.totals)
      }
    }
    return (gone, spared)
  }
}
