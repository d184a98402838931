internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The deletion of the units of one container through directory handles.
struct ContainerPurge: ~Copyable {
  /// The result for a unit.
  enum Outcome {
    /// It was deleted, and the volume gained this number of bytes.
    case deleted(UInt64)
    /// It differs from the plan and therefore stays; the reason is given.
    case changed(String)
    /// It could not be deleted completely; this number of its bytes were deleted.
    case failed(SystemError, UInt64)
    /// It was removed from its place, this number of its bytes were deleted, and the rest is at
    /// this path.
    case left(SystemError, UInt64, ByteString)

    /// Whether the unit is unchanged.
    var leavesAll: Bool { if case .changed = self { true } else { false } }

    /// Returns the outcome of a second attempt, after the first one failed. If the unit differs
    /// from the plan, the first attempt may have left it elsewhere.
    func following(_ first: SystemError?) -> Outcome {
      if case .changed = self, let first { .failed(first, 0) } else { self }
    }
  }

  let plan: PurgePlan
  let scan: ContainerScan
  private let number: Int
  private let named: Set<[[UInt8]]>
  private let mayShare: Bool
  var cursor: DirectoryCursor
  /// The number of deleted entries of each directory.
  private(set) var deleted: [Int32: Int32]
  private var planned: PlannedEntries
  /// Counts each file of a directory unit as it is deleted.
  private let counters: ProgressCounters

  init(
    _ plan: PurgePlan, container number: Int, root: consuming Directory, named: Set<[[UInt8]]>,
    deleted: [Int32: Int32], counting counters: ProgressCounters
  ) {
    self.plan = plan
    self.counters = counters
    self.number = number
    scan = plan.scan.containers[number]
    planned = PlannedEntries(scan: scan)
    self.named = named
    self.deleted = deleted
    mayShare = (try? root.mayShareBlocks()) ?? false
    cursor = DirectoryCursor(root: root)
  }

  /// Deletes a unit if it is still as planned.
  mutating func remove(_ unit: PurgeUnit) -> Outcome {
    let entry = Int(unit.entry)
    do throws(SystemError) {
      try move(to: Int(scan.entries[entry].parent))
      if unit.kind == .directory { return try removeDirectory(unit) }
      return try removeFiles(unit)
    } catch {
      return error.change.map { .changed($0) } ?? .failed(error, 0)
    }
  }

  /// Makes a directory the current one. Each directory on the way must be the one that the scan
  /// saw: not a symbolic link, and not a file system mounted since then.
  private mutating func move(to directory: Int) throws(SystemError) {
    if cursor.number == directory { return }
    let scan = scan
    do throws(DirectoryCursor.NumberedFailure) {
      try cursor.move(toNumbered: scan.directories(to: directory)) {
        (scan.name($0), scan.entries[$0].status.identity)
      }
    } catch {
      // After a failure only the root is known to be open.
      try cursor.ascend(to: 0)
      throw error.error
    }
  }

  // MARK: - Files and databases

  /// Deletes a file, or a database and then its companions.
  ///
  /// A database is deleted before its log. If the process is killed in between, a log without a
  /// database remains, which SQLite discards when it creates the database again. In the other
  /// order, a database without its last commits would remain (docs/purge.md, "Databases").
  private mutating func removeFiles(_ unit: PurgeUnit) throws(SystemError) -> Outcome {
    let members = plan.members(of: unit).sorted { order($0, unit) < order($1, unit) }
    for member in members {
      if let remark = try difference(member) { return .changed(remark) }
    }
    if unit.kind == .database, let remark = try addedCompanion(of: unit, members) {
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
    return .deleted(bytes)
  }

  /// Returns the rank of a member in the order of deletion: the database, its log, its journal, its
  /// shared memory.
  private func order(_ member: Int, _ unit: PurgeUnit) -> Int {
    if member == Int(unit.entry) { return 0 }
    switch DatabaseMember.owner(of: scan.name(member))?.member {
    case .log: return 1
    case .journal: return 2
    default: return 3
    }
  }

  /// Returns the reason if a companion was created after the plan was made, or nil. A new companion
  /// means that a process is using the database.
  private func addedCompanion(
    of unit: PurgeUnit, _ members: [Int]
  ) throws(SystemError) -> String? {
    let database = DatabaseUnit(scan.name(Int(unit.entry)))
    let known = Set(members.map { scan.name($0) })
    for member in DatabaseMember.allCases {
      let name = database.name(of: member)
      // A longer name cannot exist.
      if known.contains(name) || name.count > Int(UInt8.max) { continue }
      let isThere = try cursor.withDirectory { directory throws(SystemError) in
        try directory.statusIfPresent(name) != nil
      }
      if isThere { return "'\(name)' was created next to it" }
    }
    return nil
  }

  /// Returns how an entry of the current directory differs from the plan, or nil if it does not.
  private func difference(_ index: Int) throws(SystemError) -> String? {
    let name = scan.name(index)
    let (status, accessed) = try cursor.withDirectory { directory throws(SystemError) in
      try directory.statusAndAccess(name)
    }
    return planned.difference(of: index, status: status, accessed: accessed)
  }

  private mutating func removeFile(
    _ index: Int, _ action: PurgeDisposition.Terms.Action
  ) throws(SystemError) -> UInt64 {
    let (name, status) = (scan.name(index), scan.entries[index].status)
    let links = planned.unlinked.contains(status.identity) ? try linksLeft(name) : status.links
    let bytes = links > 1 ? 0 : ownBytes(of: index, named: name, status: status)
    if action == .truncate, status.kind == .file {
      try empty(name, status.identity)
      return bytes
    }
    try cursor.withDirectory { directory throws(SystemError) in try directory.remove(name) }
    if status.links > 1 { planned.unlinked.insert(status.identity) }
    deleted[scan.entries[index].parent, default: 0] += 1
    return bytes
  }

  private func linksLeft(_ name: ByteString) throws(SystemError) -> UInt32 {
    try cursor.withDirectory { directory throws(SystemError) in try directory.status(name).links }
  }

  /// Returns the bytes of a file that it shares with no other file, as the volume currently
  /// reports.
  private func ownBytes(of index: Int, named name: ByteString, status: FileStatus) -> UInt64 {
    guard mayShare, status.kind == .file, status.allocated > 0 else { return status.allocated }
    let wasShared = plan.request.shared[scan.container.logicalPrefix]?[index] != nil
    let shared = cursor.withDirectory { directory in
      // XFS releases blocks some time after a file is deleted; asking for the free space waits for
      // it.
      if wasShared { _ = try? directory.space() }
      return (try? directory.file(name).sharedBytes()) ?? 0
    }
    return status.allocated - min(status.allocated, shared)
  }

  /// Truncates a file to 0 bytes, if it is the planned one and has one name.
  private func empty(_ name: ByteString, _ identity: FileIdentity) throws(SystemError) {
    let file = try cursor.withDirectory { directory throws(SystemError) in
      try directory.fileForWriting(name)
    }
    let status = try file.status()
    guard status.identity == identity, status.links == 1 else { throw SystemError.replaced(name) }
    try file.truncate(to: 0)
  }

  // MARK: - Directories

  /// Deletes a directory unit. The directory is moved to the staging directory in one step, checked
  /// against the plan there, and then deleted or moved back.
  private mutating func removeDirectory(_ unit: PurgeUnit) throws(SystemError) -> Outcome {
    let entry = Int(unit.entry)
    if unit.terms.action == .truncate { return emptyDirectory(unit) }
    let name = scan.name(entry)
    let stays = named.contains(scan.pathComponents(entry))
    let staging = try PurgeStaging(in: cursor.root)
    let outcome: Outcome
    do throws(SystemError) {
      outcome = try removeDirectory(entry, name, stays: stays, through: staging)
    } catch {
      staging.close(in: cursor.root)
      throw error
    }
    staging.close(in: cursor.root)
    if case .deleted = outcome, !stays { deleted[scan.entries[entry].parent, default: 0] += 1 }
    return outcome
  }

  /// - Parameter stays: whether an empty directory takes its place.
  private func removeDirectory(
    _ entry: Int, _ name: ByteString, stays: Bool, through staging: borrowing PurgeStaging
  ) throws(SystemError) -> Outcome {
    let identity = scan.entries[entry].status.identity
    let path = scan.path(entry)
    let planned = planned
    return try cursor.withDirectory { directory throws(SystemError) -> Outcome in
      guard try directory.status(name).identity == identity else {
        return .changed("it was replaced")
      }
      let moved = try staging.moveIn(name, at: path, from: directory, leavingTwin: stays)
      let check: PlannedEntries.DirectoryCheck
      do throws(SystemError) {
        check = try PlannedEntries.DirectoryCheck.run(
          against: planned, entry: entry, directory: try staging.directory.directory(moved))
        if let remark = check.difference {
          try staging.restoreOriginal(moved, name, to: directory, wasExchanged: stays)
          return .changed(remark)
        }
      } catch {
        try? staging.restoreOriginal(moved, name, to: directory, wasExchanged: stays)
        throw error
      }
      let pending: ByteString
      do throws(SystemError) {
        pending = try staging.markForDeletion(moved)
      } catch {
        try? staging.restoreOriginal(moved, name, to: directory, wasExchanged: stays)
        throw error
      }
      return delete(pending, of: check.freed.bytes, in: staging)
    }
  }

  /// Deletes a directory that matches the plan. From here on it may be incomplete and is never
  /// moved back. The next purge finishes what fails.
  private func delete(
    _ pending: ByteString, of bytes: UInt64, in staging: borrowing PurgeStaging
  ) -> Outcome {
    let counters = counters
    do throws(SystemError) {
      let watch = RemovalWatch(
        makesWritable: true, didRemove: { counters.didHandle(files: 1) })
      _ = try staging.directory.removeTree(pending, watch: watch)
      return .deleted(bytes)
    } catch {
      let left = staging.size(of: pending)
      return .left(error, bytes - min(bytes, left), staging.directory.path.appending(pending))
    }
  }

  /// Truncates the files of a directory unit whose action is to truncate. A file that differs from
  /// the plan is left unchanged.
  private mutating func emptyDirectory(_ unit: PurgeUnit) -> Outcome {
    var (bytes, isEmptied): (UInt64, Bool) = (0, false)
    var difference: String?
    for member in plan.members(of: unit) where scan.entries[member].status.kind == .file {
      do throws(SystemError) {
        try move(to: Int(scan.entries[member].parent))
        difference = try self.difference(member)
        if difference != nil { continue }
        bytes += try removeFile(member, .truncate)
        isEmptied = true
      } catch {
        guard let change = error.change else { return .failed(error, bytes) }
        difference = change
      }
    }
    if let difference, !isEmptied { return .changed(difference) }
    return .deleted(bytes)
  }

  /// Removes the directories that became empty, except those that a rule names. Returns the bytes
  /// that they occupied.
  mutating func removeEmptied() -> UInt64 {
    var bytes: UInt64 = 0
    var pending = deleted.keys.filter { isEmptied($0) }.sorted()
    while let directory = pending.popLast() {
      guard isRemovable(Int(directory)) else { continue }
      let (name, entry) = (scan.name(Int(directory)), scan.entries[Int(directory)])
      do throws(SystemError) {
        try move(to: Int(entry.parent))
        try cursor.withDirectory { parent throws(SystemError) in try parent.removeDirectory(name) }
      } catch { continue }
      bytes += entry.status.allocated
      // Each directory is removed once. Its parent follows if this was its last entry.
      deleted[directory] = -1
      deleted[entry.parent, default: 0] += 1
      if isEmptied(entry.parent) { pending.append(entry.parent) }
    }
    return bytes
  }

  private func isEmptied(_ directory: Int32) -> Bool {
    directory != 0 && deleted[directory] == scan.entries[Int(directory)].childCount
  }

  /// Whether a directory that became empty may be removed: the policy allows its content to be
  /// purged, and no rule names it.
  private func isRemovable(_ directory: Int) -> Bool {
    let verdict = scan.entries[directory].verdicts.keep
    return verdict.purge != .never
      && (verdict.dataClass == .cache || verdict.dataClass == .temporary)
      && !named.contains(scan.pathComponents(directory))
  }
}

extension SystemError {
  /// The difference from the plan that the error shows: the entry no longer exists, or a symbolic
  /// link or another directory has replaced it. Nil if it shows none.
  fileprivate var change: String? {
    if isMissing { return "it no longer exists" }
    return isLink || isStale ? "it was replaced" : nil
  }
}
