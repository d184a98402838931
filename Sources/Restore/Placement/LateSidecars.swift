internal import DatabaseCapture
package import SystemIO

extension RestorePlan {
  /// Returns the plan with the logs, journals and indexes that appeared after planning beside the
  /// files to restore, or nil if there are none. An app that has committed to a database since then
  /// left them, and they would be applied to the restored one.
  ///
  /// They are moved away with the database, unless the request keeps entries that changed.
  package func addingLateSidecars(for run: RestoreRun) throws(SystemError) -> RestorePlan? {
    var late = LateSidecars(self, try run.targetCursor())
    let found = late.find(besides: run.findings)
    if found.isEmpty { return nil }
    var plan = self
    let members = databaseMembers
    var positions: [Child: Int] = [:]
    for (position, database) in databases.enumerated() {
      positions[Child(directory: database.directory, name: database.name)] = position
    }
    for (child, number, sidecars) in found {
      let moved = request.keepsChanges ? [] : sidecars
      if let position = positions[child] {
        plan.databases[position].isPresent = true
        plan.databases[position].orphanedSidecars += moved
      } else if !members.contains(number) {
        plan.databases.append(
          Database(
            directory: child.directory, name: child.name, isPresent: true, members: [number],
            entry: number, orphanedSidecars: moved))
      }
    }
    return plan
  }
}

/// A search for files that belong to databases and that a plan does not have. Of a directory, only
/// the few names that can be such files are remembered.
private struct LateSidecars: ~Copyable {
  /// A file to restore, its number, and the names beside it.
  typealias Found = (file: RestorePlan.Child, number: Int, sidecars: [ByteString])

  private let plan: RestorePlan
  private var target: RestoreRun.Cursor
  /// The names found in each directory that has any.
  private var names: [Int: Set<ByteString>] = [:]

  init(_ plan: RestorePlan, _ target: consuming RestoreRun.Cursor) {
    self.plan = plan
    self.target = target
  }

  /// Returns the files with the names that the plan does not have, in the order of the plan.
  mutating func find(besides findings: RestoreFindings) -> [Found] {
    let tree = plan.tree
    list()
    if names.isEmpty { return [] }
    for entry in tree.entries.indices.dropFirst() {
      // An entry of the snapshot is restored or kept by its own decision.
      let directory = Int(tree.entries[entry].parent)
      if names[directory] != nil { names[directory]?.remove(tree.name(entry)) }
    }
    for child in plan.databases.lazy.flatMap(\.children) {
      names[child.directory]?.remove(child.name)
    }
    var found: [Found] = []
    for number in tree.entries.indices.dropFirst() where isWanted(number) {
      let directory = Int(tree.entries[number].parent)
      guard let others = names[directory], !others.isEmpty, !findings.isUnmade(number) else {
        continue
      }
      let name = tree.name(number)
      let sidecars = DatabasePlanner.sidecars.map { name.followed(by: $0) }.filter(others.contains)
      if sidecars.isEmpty || !belong(sidecars, to: name, in: directory) { continue }
      let child = RestorePlan.Child(directory: directory, name: name)
      found.append((child, number, sidecars))
    }
    return found
  }

  /// Whether an entry is a file that is restored into an existing directory.
  private func isWanted(_ number: Int) -> Bool {
    let entry = plan.tree.entries[number]
    return entry.kind == .file && entry.action.isWritten
      && plan.tree.entries[Int(entry.parent)].isMerged
  }

  /// Lists each directory into which a file is restored. The few files of a request for one path
  /// are looked up instead, as in a directory that cannot be listed.
  private mutating func list() {
    var unlisted: Set<Int> = plan.target.name == nil ? [] : [0]
    var listed: Set<Int> = []
    for number in plan.tree.entries.indices.dropFirst() where isWanted(number) {
      let directory = Int(plan.tree.entries[number].parent)
      if !unlisted.contains(directory) {
        if !listed.insert(directory).inserted { continue }
        if let found = names(in: directory) {
          if !found.isEmpty { names[directory] = found }
          continue
        }
        unlisted.insert(directory)
      }
      let found = names(beside: plan.tree.name(number), in: directory)
      if !found.isEmpty { names[directory, default: []].formUnion(found) }
    }
  }

  private mutating func names(in directory: Int) -> Set<ByteString>? {
    try? target.within(directory) { directory throws(SystemError) in
      var names: Set<ByteString> = []
      try directory.forEachName { name in
        if DatabaseMember.mayBeSidecar(name) { names.insert(ByteString(name)) }
      }
      return names
    }
  }

  private mutating func names(beside name: ByteString, in directory: Int) -> [ByteString] {
    let names = DatabasePlanner.sidecars.map { name.followed(by: $0) }
    // A name that cannot be looked up is looked up again before the database is put in place.
    let found = try? target.within(directory) { directory throws(SystemError) in
      names.filter { (try? directory.statusIfPresent($0)) != nil }
    }
    return found ?? []
  }

  /// Whether existing names are files of a database. As in a backup, a log identifies a database; a
  /// journal or an index alone does not.
  private mutating func belong(
    _ sidecars: [ByteString], to name: ByteString, in directory: Int
  ) -> Bool {
    let belong = try? target.within(directory) { directory throws(SystemError) in
      let files = sidecars.filter { (try? directory.statusIfPresent($0))?.kind == .file }
      if files.isEmpty { return false }
      return files.contains { DatabaseMember.owner(of: $0)?.member == .log }
        || directory.mayBeDatabase(name)
    }
    return belong ?? true
  }
}

extension Directory {
  /// Whether a file begins like a database, or has a journal that would be rolled back into it, as
  /// an encrypted database may. A missing or unreadable file may be one.
  func mayBeDatabase(_ name: ByteString) -> Bool {
    guard (try? statusIfPresent(name))?.kind == .file else { return true }
    if (try? DatabaseUnit.hasMagic(fileUntouched(name))) ?? true { return true }
    return DatabaseUnit(name).hasLiveJournal(in: self)
  }
}
