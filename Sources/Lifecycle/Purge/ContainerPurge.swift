internal import ArchiveStore
internal import DatabaseCapture
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The deletion of units of one container, by the handles of its directories.
struct ContainerPurge: ~Copyable {
  /// What became of a unit.
  enum Outcome {
    /// It is gone, and the volume has so many bytes back.
    case gone(UInt64)
    /// It is not what was planned, and stays.
    case changed(String)
    /// It could not be deleted, though so many bytes of it were.
    case failed(SystemError, UInt64)

    /// Whether the unit stays as it was.
    var leavesAll: Bool { if case .changed = self { true } else { false } }
  }

  let plan: PurgePlan
  let scan: ContainerScan
  private let number: Int
  private let named: Set<[[UInt8]]>
  private let mayShare: Bool
  var ladder: DirectoryLadder
  /// The directories that are open, from the root down, by entry.
  private var way: [Int] = [0]
  /// How many entries of each directory are gone.
  private(set) var gone: [Int32: Int32]
  private var planned: PlannedEntries
  /// Told of each file of a directory that goes as one, while it goes.
  private let counters: ProgressCounters

  init(
    _ plan: PurgePlan, _ number: Int, _ root: consuming Directory, named: Set<[[UInt8]]>,
    gone: [Int32: Int32], counting counters: ProgressCounters
  ) {
    self.plan = plan
    self.counters = counters
    self.number = number
    scan = plan.scan.containers[number]
    planned = PlannedEntries(scan: scan)
    self.named = named
    self.gone = gone
    mayShare = (try? root.mayShareBlocks()) ?? false
    ladder = DirectoryLadder(root: root)
  }

  /// Deletes a unit, if it is still what was planned.
  mutating func remove(_ unit: PurgeUnit) -> Outcome {
    let entry = Int(unit.entry)
    do throws(SystemError) {
      try go(to: Int(scan.entries[entry].parent))
      if unit.kind == .folder { return try removeDirectory(unit) }
      return try removeFiles(unit)
    } catch {
      if error.isMissing { return .changed("it is not there any more") }
      if error.isReplaced { return .changed("another thing stands in its place") }
      return .failed(error, 0)
    }
  }

  /// Takes a directory in hand: each on the way must be the one that the scan saw, which no link is and
  /// nothing that was mounted there since.
  private mutating func go(to directory: Int) throws(SystemError) {
    if way.last == directory { return }
    var wanted = [directory]
    while let first = wanted.last, first != 0 { wanted.append(Int(scan.entries[first].parent)) }
    wanted.reverse()
    var common = 0
    while common < min(way.count, wanted.count), way[common] == wanted[common] { common += 1 }
    way.removeLast(way.count - common)
    do throws(SystemError) {
      try ladder.ascend(to: common - 1)
      for entry in wanted[common...] {
        try ladder.descend(scan.name(entry), scan.entries[entry].status.identity)
        way.append(entry)
      }
    } catch {
      // What is open is known only from the root on.
      way = [0]
      try ladder.ascend(to: 0)
      throw error
    }
  }

  // MARK: - Files and databases

  /// Deletes a file, or a database and then its companions.
  ///
  /// A database goes before its log. What a kill between the two leaves is a log without a
  /// database, which SQLite throws away when it makes the database anew: the other way round it
  /// would be a database without what was last committed to it (docs/purge.md, "Databases").
  private mutating func removeFiles(_ unit: PurgeUnit) throws(SystemError) -> Outcome {
    let members = plan.members(of: unit).sorted { order($0, unit) < order($1, unit) }
    for member in members {
      if let remark = try difference(member) { return .changed(remark) }
    }
    if unit.kind == .database, let remark = try unplannedCompanion(of: unit, members) {
      return .changed(remark)
    }
    var bytes: UInt64 = 0
    for member in members {
      do throws(SystemError) {
        bytes += try removeFile(member, unit.terms.action)
      } catch {
        return .failed(error, bytes)
      }
    }
    return .gone(bytes)
  }

  /// A database's own file first, then its log, its journal, its shared memory.
  private func order(_ member: Int, _ unit: PurgeUnit) -> Int {
    if member == Int(unit.entry) { return 0 }
    switch DatabaseMember.owner(of: scan.name(member))?.member {
    case .log: return 1
    case .journal: return 2
    default: return 3
    }
  }

  /// A companion that was not there when the plan was made: whoever made it uses the database.
  private func unplannedCompanion(
    of unit: PurgeUnit, _ members: [Int]
  ) throws(SystemError) -> String? {
    let database = DatabaseUnit(scan.name(Int(unit.entry)))
    let known = Set(members.map { scan.name($0) })
    for member in DatabaseMember.allCases where !known.contains(database.name(of: member)) {
      let name = database.name(of: member)
      let isThere = try ladder.withDirectory { directory throws(SystemError) in
        try directory.statusIfPresent(name) != nil
      }
      if isThere { return "'\(name)' has come beside it" }
    }
    return nil
  }

  /// In what an entry of the directory in hand is not as it was planned; nil when it is.
  private func difference(_ index: Int) throws(SystemError) -> String? {
    let name = scan.name(index)
    let (status, accessed) = try ladder.withDirectory { directory throws(SystemError) in
      try directory.look(name)
    }
    return planned.difference(index, status, accessed)
  }

  private mutating func removeFile(
    _ index: Int, _ action: PurgeTerms.Action
  ) throws(SystemError) -> UInt64 {
    let (name, status) = (scan.name(index), scan.entries[index].status)
    let links = planned.unlinked.contains(status.identity) ? try linksLeft(name) : status.links
    let bytes = links > 1 ? 0 : ownBytes(index, name, status)
    if action == .truncate, status.kind == .file {
      try empty(name, status.identity)
      return bytes
    }
    try ladder.withDirectory { directory throws(SystemError) in try directory.remove(name) }
    if status.links > 1 { planned.unlinked.insert(status.identity) }
    gone[scan.entries[index].parent, default: 0] += 1
    return bytes
  }

  private func linksLeft(_ name: ByteString) throws(SystemError) -> UInt32 {
    try ladder.withDirectory { directory throws(SystemError) in try directory.status(name).links }
  }

  /// Bytes of a file that no other file has, too, as the volume says at this moment.
  private func ownBytes(_ index: Int, _ name: ByteString, _ status: FileStatus) -> UInt64 {
    guard mayShare, status.kind == .file, status.allocated > 0 else { return status.allocated }
    let wasShared = plan.request.shared[scan.container.logicalPrefix]?[index] != nil
    let shared = ladder.withDirectory { directory in
      // XFS gives blocks back some time after a file is gone; asking for the free space waits.
      if wasShared { _ = try? directory.space() }
      return (try? directory.file(name).sharedBytes()) ?? 0
    }
    return status.allocated - min(status.allocated, shared)
  }

  /// Makes a file empty; only the planned one with one name.
  private func empty(_ name: ByteString, _ identity: FileIdentity) throws(SystemError) {
    let file = try ladder.withDirectory { directory throws(SystemError) in
      try directory.fileForWriting(name)
    }
    let status = try file.status()
    guard status.identity == identity, status.links == 1 else { throw SystemError.replaced(name) }
    try file.truncate(to: 0)
  }

  // MARK: - Directories

  /// Takes a directory that goes as one: it is moved aside in one step, held against the plan there,
  /// and then deleted, or moved back.
  private mutating func removeDirectory(_ unit: PurgeUnit) throws(SystemError) -> Outcome {
    let entry = Int(unit.entry)
    if unit.terms.action == .truncate { return try emptyDirectory(unit) }
    let name = scan.name(entry)
    let stays = named.contains(components(entry))
    let identity = scan.entries[entry].status.identity
    let path = scan.path(entry)
    let aside = try PurgeStaging(in: ladder.root)
    let (planned, counters) = (planned, counters)
    let outcome = try ladder.withDirectory { directory throws(SystemError) -> Outcome in
      guard try directory.status(name).identity == identity else {
        return .changed("another thing stands in its place")
      }
      let moved = try aside.take(name, at: path, from: directory, leavingTwin: stays)
      let check: DirectoryCheck
      do throws(SystemError) {
        check = try DirectoryCheck.run(planned, entry, try aside.directory.directory(moved))
        if let remark = check.difference {
          try aside.restoreOriginal(moved, name, to: directory, wasExchanged: stays)
          return .changed(remark)
        }
      } catch {
        try? aside.restoreOriginal(moved, name, to: directory, wasExchanged: stays)
        throw error
      }
      // From here on it is not whole any more and never comes back: the next purge ends what fails.
      do throws(SystemError) {
        let watch = RemovalWatch(didRemove: { counters.didHandle(files: 1) })
        _ = try aside.directory.removeTree(try aside.doom(moved), watch: watch)
        return .gone(check.bytes)
      } catch { return .failed(error, 0) }
    }
    aside.close(in: ladder.root)
    if case .gone = outcome, !stays { gone[scan.entries[entry].parent, default: 0] += 1 }
    return outcome
  }

  /// Empties the files of a directory that goes as one and whose files stay.
  private mutating func emptyDirectory(_ unit: PurgeUnit) throws(SystemError) -> Outcome {
    var bytes: UInt64 = 0
    for member in plan.members(of: unit) where scan.entries[member].status.kind == .file {
      try go(to: Int(scan.entries[member].parent))
      if try difference(member) != nil { continue }
      bytes += try removeFile(member, .truncate)
    }
    return .gone(bytes)
  }

  func components(_ entry: Int) -> [[UInt8]] {
    scan.path(entry).components.map { Array($0.bytes) }
  }

  /// Removes the directories that were emptied, but for those that rules name; gives
  /// the bytes that they had.
  mutating func removeEmptied() -> UInt64 {
    var bytes: UInt64 = 0
    var pending = gone.keys.filter { isEmptied($0) }.sorted()
    while let directory = pending.popLast() {
      guard mayGo(Int(directory)) else { continue }
      let (name, entry) = (scan.name(Int(directory)), scan.entries[Int(directory)])
      do throws(SystemError) {
        try go(to: Int(entry.parent))
        try ladder.withDirectory { parent throws(SystemError) in try parent.removeDirectory(name) }
      } catch { continue }
      bytes += entry.status.allocated
      // Never again; and its parent, if that was the last in it.
      gone[directory] = -1
      gone[entry.parent, default: 0] += 1
      if isEmptied(entry.parent) { pending.append(entry.parent) }
    }
    return bytes
  }

  private func isEmptied(_ directory: Int32) -> Bool {
    directory != 0 && gone[directory] == scan.entries[Int(directory)].childCount
  }

  /// Whether an emptied directory goes: the policy lets go what is in it, and no rule names it.
  private func mayGo(_ directory: Int) -> Bool {
    let verdict = scan.entries[directory].verdicts.keep
    return verdict.purge != .never
      && (verdict.dataClass == .cache || verdict.dataClass == .temporary)
      && !named.contains(components(directory))
  }
}

extension SystemError {
  /// Whether something else stands where a thing was, a link or another directory.
  fileprivate var isReplaced: Bool { isLink || isStale }
}
