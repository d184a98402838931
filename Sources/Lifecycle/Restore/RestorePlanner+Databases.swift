internal import ArchiveStore
internal import DatabaseCapture
internal import SystemIO

/// A database that a restore changes in a folder that is there: it, its log and its journal are one
/// unit. A log that belongs to another state of the database would damage it when it is opened.
struct PlannedDatabase: Sendable {
  /// The folder that it is in.
  let folder: Int
  /// The entry of the database, and those of its log and its journal, as far as they are written.
  var entry: Int?
  var companions: [Int] = []
  /// What lies beside it and belongs to another state of it: it goes away before anything comes.
  var strays: [ByteString] = []
}

extension RestorePlanner {
  private static let companions = [DatabaseMember.log, .journal].map(\.suffix)
  private static let sidecars = [DatabaseMember.log, .journal, .sharedMemory].map(\.suffix)

  /// Makes units of the databases in a folder that is merged into, where something of them changes.
  mutating func settleDatabases(in folder: OpenFolder) {
    guard plan.tree.entries[folder.number].isMerged, !folder.files.isEmpty,
      let there = namesThere(in: folder.number)
    else { return }
    let entries = Dictionary(
      folder.files.map { (plan.tree.name($0), $0) }, uniquingKeysWith: { first, _ in first })
    for (name, number) in entries.sorted(by: { $0.key < $1.key }) {
      let mine = Self.companions.compactMap { entries[name.followed(by: $0)] }
      let present = Self.sidecars.map { name.followed(by: $0) }.filter(there.contains)
      if mine.isEmpty, present.isEmpty { continue }
      settle(number, mine, present: present, isThere: there.contains(name), in: folder.number)
    }
  }

  /// The same for a database that comes by itself: what lies beside its place goes away.
  mutating func settleDatabase(_ number: Int, in folder: Int) {
    let name = plan.tree.name(number)
    let present = Self.sidecars.map { name.followed(by: $0) }.filter { isFile($0, in: folder) }
    if present.isEmpty { return }
    settle(number, [], present: present, isThere: isFile(name, in: folder), in: folder)
  }

  /// The database in a folder that a log, a journal or an index there belongs to, where it stays. Of
  /// the names that the snapshot lacks some are known to go.
  mutating func databaseThatStays(
    with name: ByteString, in folder: Int, lacking names: Set<ByteString>, gone: Set<ByteString>
  ) -> ByteString? {
    guard let (database, _) = DatabaseMember.owner(of: name), isFile(database, in: folder) else {
      return nil
    }
    if names.contains(database) { return gone.contains(database) ? nil : database }
    // What is of another state than a database that comes goes with the one that was there.
    let goes = plan.databases.contains { $0.folder == folder && $0.strays.contains(name) }
    return goes ? nil : database
  }

  private mutating func isFile(_ name: ByteString, in folder: Int) -> Bool {
    guard (try? present?.ascend(to: Int(plan.tree.entries[folder].depth))) != nil else {
      return false
    }
    let status = try? present?.withFolder { folder in try folder.statusIfPresent(name) }
    return (status ?? nil)?.kind == .file
  }

  private mutating func namesThere(in folder: Int) -> Set<ByteString>? {
    guard (try? present?.ascend(to: Int(plan.tree.entries[folder].depth))) != nil else {
      return nil
    }
    return try? present?.withFolder { folder in Set(try folder.names()) }
  }

  private mutating func settle(
    _ number: Int, _ companions: [Int], present: [ByteString], isThere: Bool, in folder: Int
  ) {
    let members = [number] + companions
    // Where one of the files that are there is to stay, all stay.
    if members.contains(where: { plan.tree.entries[$0].action == .leave }) {
      for member in members { leave(member) }
      if !isThere {
        let remark = "what lies there of it is of another state, and stays"
        plan.blocked.append(PathRemark(path: plan.shownPath(number), remark: remark))
      }
      return
    }
    let names = Set(companions.map { plan.tree.name($0) })
    let strays = present.filter { !names.contains($0) }
    let written = members.filter { plan.tree.entries[$0].action.isWritten }
    let hasOldLog = strays.contains { !$0.isSharedMemory }
    if written.isEmpty, !hasOldLog || mode == .never || mode == .ifNewer { return }
    plan.databases.append(
      PlannedDatabase(
        folder: folder, entry: written.contains(number) ? number : nil,
        companions: written.filter { $0 != number }, strays: strays))
  }

  /// Takes an entry out of what is written.
  private mutating func leave(_ number: Int) {
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
  }
}

extension ByteString {
  fileprivate func followed(by suffix: [UInt8]) -> ByteString { ByteString(bytes + suffix) }

  /// Whether it is the name of a database's index of its log, which is of no use to anybody else.
  var isSharedMemory: Bool { bytes.suffix(4).elementsEqual(DatabaseMember.sharedMemory.suffix) }

  /// Whether it is the name of a log or a journal of a database of that name.
  func isCompanion(of database: ByteString) -> Bool {
    [DatabaseMember.log, .journal].contains { self == database.followed(by: $0.suffix) }
  }
}
