internal import DatabaseCapture
package import SystemIO

extension RestorePlan {
  /// Returns the plan with numbers in the names of kept entries where a name would not be unique:
  /// for each database that is kept with its log, because all of its files need the same number,
  /// and for long names, which are cut. The journal's steps then contain the names that are used,
  /// so that a recovery or a rollback finds the right files. For any other name that is taken, the
  /// move itself finds a number.
  package func numberingKeptEntries(for run: RestoreRun) throws(SystemError) -> RestorePlan {
    let kept = databases.indices.filter { isKeptWithLog(databases[$0]) }
    let members = Set(kept.flatMap { databases[$0].members })
    let cut = tree.entries.indices.filter { number in
      let entry = tree.entries[number]
      return entry.isMovedAside && entry.action.isWritten && !members.contains(number)
        && Int(entry.nameLength) >= tree.asideRoomOfDatabase
    }
    if kept.isEmpty, cut.isEmpty { return self }
    var plan = self
    var names = UsedNames(try run.targetCursor())
    for number in kept {
      let database = databases[number]
      plan.databases[number].asideNumber = names.add(in: database.directory) { candidate in
        DatabaseMember.allCases.map { member in
          tree.asideName(
            ofDatabase: database.name, companion: member.suffix[...], numbered: candidate)
        }
      }
    }
    for number in cut {
      let name = tree.name(number)
      plan.tree.asideNumbers[number] = names.add(in: Int(tree.entries[number].parent)) {
        [tree.asideName(of: name, numbered: $0)]
      }
    }
    return plan
  }

  /// Whether the database is replaced and kept under another name, together with its log.
  private func isKeptWithLog(_ database: Database) -> Bool {
    database.entry.map { tree.entries[$0].isMovedAside } ?? false
  }

  /// The names for kept entries that are taken: by entries of the target, and by other kept ones.
  private struct UsedNames: ~Copyable {
    private var added: Set<Child> = []
    private var target: RestoreRun.Cursor

    init(_ target: consuming RestoreRun.Cursor) { self.target = target }

    /// Adds the names with the first number with which all of them are free. Returns the number.
    mutating func add(in directory: Int, _ names: (_ number: Int) -> [ByteString]) -> Int {
      for number in 0..<1000 {
        let children = names(number).map { Child(directory: directory, name: $0) }
        if children.contains(where: added.contains) { continue }
        if areFree(children) {
          added.formUnion(children)
          return number
        }
      }
      return 0
    }

    /// A name that cannot be looked up counts as free; the move into it replaces nothing.
    private mutating func areFree(_ children: [Child]) -> Bool {
      for child in children {
        let isTaken = try? target.within(child.directory) { directory throws(SystemError) in
          try directory.statusIfPresent(child.name) != nil
        }
        if isTaken == true { return false }
      }
      return true
    }
  }
}
