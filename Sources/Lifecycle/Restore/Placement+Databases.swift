internal import SystemIO

/// Databases in a folder that is merged into: what lies beside one and is of another state of it is
/// renamed away first, then come log and journal, then the database.
extension Placement {
  /// Renames away what would be taken for a restored database's log; what is to be deleted anyway,
  /// and the index that SQLite makes anew, is removed.
  mutating func removeStrays() {
    for database in plan.databases where !database.isBroken(run.findings) {
      for name in database.strays {
        do throws(SystemError) {
          let fate = plan.fate(ofStray: name, of: database, keeping: trash != nil)
          let (trash, path) = (trash, plan.tree.path(database.folder, from: 0).components)
          try target.within(database.folder) { folder throws(SystemError) in
            switch fate {
            case .goes: try folder.remove(name)
            case .stays(let aside):
              try folder.rename(name, to: aside, in: folder, replacing: false)
            case .isKept:
              try trash?.keep(name, of: folder, at: path, leaving: true)
            }
          }
        } catch {
          if error.isMissing { continue }
          run.findings.remark(
            database.folder, "cannot rename '\(name)' away: \(error.reason)")
          // Beside a log of another state the database is not put, and what else lies there stays.
          database.fail(run.findings, "what lies beside it is of another state of the database")
          break
        }
      }
    }
  }
}

/// What becomes of a log that belongs to another state of a database.
enum StrayFate: Equatable {
  /// It is removed: an index that SQLite makes anew, or what is to be deleted anyway.
  case goes
  /// It stays under another name beside its database, which does so, too.
  case stays(as: ByteString)
  /// It is kept in the trash, with its database.
  case isKept
}

extension PlannedDatabase {
  /// What is written of it.
  private var members: [Int] { companions + [entry].compactMap { $0 } }

  /// Whether something of it could not be made: then none of it is put, and what is there stays.
  func isBroken(_ findings: RestoreFindings) -> Bool { members.contains(where: findings.isUnmade) }

  /// Says of what is not known to be missing that it does not come.
  fileprivate func fail(_ findings: RestoreFindings, _ reason: String) {
    for member in members where !findings.isUnmade(member) { findings.fail(member, reason) }
  }
}

extension RestorePlan {
  /// A database without its log, or beside another one's, is damaged: it comes whole, or what is there
  /// of it stays.
  func failBrokenDatabases(_ findings: RestoreFindings) {
    for database in databases where database.isBroken(findings) {
      database.fail(findings, "a file of the same database could not be restored")
    }
  }

  /// What goes by itself, and is not to stay beside a database that does.
  func removals(without findings: RestoreFindings) -> [PlannedDeletion] {
    let broken = databases.filter { $0.isBroken(findings) }
    return deletions.filter { deletion in
      deletion.replacement == nil
        && !broken.contains {
          $0.folder == deletion.folder && $0.strays.contains(deletion.name)
        }
    }
  }

  /// A log goes where its database goes, so that both can be opened there.
  func fate(
    ofStray name: ByteString, of database: PlannedDatabase, keeping: Bool
  ) -> StrayFate {
    if name.isSharedMemory { return .goes }
    let isAside = database.entry.map { tree.entries[$0].isPutAside } ?? false
    if keeping, !isAside { return .isKept }
    if !keeping, request.deletes { return .goes }
    return .stays(as: ByteString(Array(name.bytes) + tree.asideSuffix.bytes))
  }

  /// For each database that is written its log and its journal, as far as they are.
  var companionsByDatabase: [Int: [Int]] {
    Dictionary(
      databases.compactMap { database in database.entry.map { ($0, database.companions) } },
      uniquingKeysWith: { first, _ in first })
  }
}
