internal import SystemIO

/// Databases in a folder that is merged into: what lies beside one and is of another state of it is
/// renamed away first, then come log and journal, then the database.
extension Placement {
  /// Renames away what would be taken for a restored database's log; what is to be deleted anyway,
  /// and the index that SQLite makes anew, is removed.
  mutating func removeStrays() {
    for database in plan.databases {
      for name in database.strays {
        do throws(SystemError) {
          let aside = ByteString(Array(name.bytes) + plan.tree.asideSuffix.bytes)
          let isGone = name.isSharedMemory || plan.request.deletes
          try target.within(database.folder) { folder throws(SystemError) in
            if isGone { return try folder.remove(name) }
            try folder.rename(name, to: aside, in: folder, replacing: false)
          }
        } catch {
          if error.isMissing { continue }
          run.findings.remark(
            database.folder, "cannot rename '\(name)' away: \(error.reason)")
          // Beside a log of another state the database is not put.
          for entry in database.companions + [database.entry].compactMap({ $0 }) {
            run.findings.fail(entry, "what lies beside it is of another state of the database")
          }
        }
      }
    }
  }
}

extension RestorePlan {
  /// For each database that is written its log and its journal, as far as they are.
  var companionsByDatabase: [Int: [Int]] {
    Dictionary(
      databases.compactMap { database in database.entry.map { ($0, database.companions) } },
      uniquingKeysWith: { first, _ in first })
  }
}
