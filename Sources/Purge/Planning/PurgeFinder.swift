internal import DatabaseCapture
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A search for the units of one container: the entries that may be deleted, grouped into units,
/// and the reason why each other entry stays.
struct PurgeFinder {
  let scan: ContainerScan
  private let policy: CompiledPolicy
  private let scanStart: Int64
  /// The bytes of files that share blocks with other files, by entry.
  private let shared: [Int: UInt64]
  /// The index of the container in the scan.
  private let number: Int32
  /// The units found, in scan order.
  private var units: [PurgeUnit] = []
  /// The companions of database units, by the entry of the database.
  private(set) var companions: [Int32: [Int32]] = [:]
  /// The reasons why entries are not candidates, unless the policy's verdict is the only reason.
  private(set) var conflicts: [Int32: PurgePlan.Conflict] = [:]
  /// The immutable and append-only entries that alone prevent a deletion.
  private(set) var fixed: Set<Int32> = []

  /// The names of marker files, which mark the directory that contains them.
  private let markFiles: [ByteString]
  /// The directories whose content rules name.
  private let parents: Set<[[UInt8]]>

  init(
    _ scan: ContainerScan, at number: Int, policy: CompiledPolicy, request: PurgeRequest
  ) {
    self.scan = scan
    self.policy = policy
    self.number = Int32(number)
    scanStart = request.now.seconds
    shared = request.shared[scan.container.logicalPrefix] ?? [:]
    parents = policy.namedParents(scan.container.kind)
    markFiles = policy.markers.compactMap { marker in
      guard marker.kinds.contains(scan.container.kind), case .file(let name, _) = marker.sign
      else { return nil }
      return ByteString(name)
    }
  }

  /// Finds all units.
  mutating func run() {
    guard !scan.entries.isEmpty, !scan.ownDirectories.contains(0) else { return }
    // The container's own directory stays, so its content cannot be moved away in one step.
    if scan.entries[0].verdicts.keep.purge.terms != nil, IndivisibleDirectory.isOne(0, in: scan) {
      conflicts[0] = .indivisible
      return
    }
    var pending = [0]
    while let directory = pending.popLast() { search(directory, &pending) }
  }

  /// Returns the units found and removes them from the finder.
  mutating func removeUnits() -> [PurgeUnit] {
    var found: [PurgeUnit] = []
    swap(&found, &units)
    return found
  }

  private mutating func search(_ directory: Int, _ pending: inout [Int]) {
    let children = scan.entries[directory].children
    let databases = Databases(children, scan)
    for index in children {
      let entry = scan.entries[index]
      switch entry.status.kind {
      case .directory:
        if !addDirectory(index) { pending.append(index) }
      case .file, .symlink:
        guard !databases.isCompanion(index) else { continue }
        let companions = databases.companions(of: index)
        if companions.isEmpty { addFile(index) } else { addDatabase(index, companions) }
      case .fifo, .socket, .characterDevice, .blockDevice:
        conflicts[Int32(index)] = .special
      }
    }
  }

  // MARK: - Files and databases

  private mutating func addFile(_ index: Int) {
    if let conflict = conflict(index, of: index) {
      record(conflict, at: index)
    } else {
      var sum = Totals()
      add(index, to: &sum)
      append(index, as: .file, sum: sum)
    }
  }

  /// Records a conflict, except `never`: it applies to most of a device, and the verdict says it.
  private mutating func record(_ conflict: PurgePlan.Conflict, at index: Int) {
    if conflict != .never { conflicts[Int32(index)] = conflict }
    if conflict.isFixed { fixed.insert(Int32(holder(ofFlagsFixing: index))) }
  }

  private mutating func addDatabase(_ index: Int, _ sidecars: [Int]) {
    let members = [index] + sidecars
    let found = members.compactMap { member in conflict(member, of: index).map { (member, $0) } }
    // Without the flags, another conflict would remain.
    let others = found.filter { !$0.1.isFixed }
    if let blocker = (others.first ?? found.first)?.0 {
      for member in members { conflicts[Int32(member)] = .holds(scan.logicalPath(blocker)) }
      conflicts[Int32(blocker)] = nil
      for (member, conflict) in others.isEmpty ? found : [others[0]] {
        record(conflict, at: member)
      }
      return
    }
    var sum = Totals()
    for member in members { add(member, to: &sum) }
    append(index, as: .database, sum: sum)
    companions[Int32(index)] = sidecars.map(Int32.init)
  }

  /// Returns the reason why an entry may not be deleted, or cannot be deleted, as a part of the
  /// unit of `top`; nil if it can.
  private func conflict(_ index: Int, of top: Int) -> PurgePlan.Conflict? {
    let found = conflict(index)
    // A marker file is deleted only with its directory.
    if let found, found != .mark || index == top { return found }
    guard isFixed(index, of: top) else { return found }
    return .fixed(scan.logicalPath(holder(ofFlagsFixing: index)))
  }

  /// Whether an immutable or append-only entry prevents the deletion of an entry, or of its content
  /// if its unit is truncated: the entry itself or the directory from which it would be removed.
  private func isFixed(_ index: Int, of top: Int) -> Bool {
    let status = scan.entries[index].status
    if scan.entries[top].verdicts.keep.purge.terms?.action == .truncate {
      if status.kind == .file { return status.isFixed }
      if scan.entries[top].status.kind == .directory { return false }
    }
    return status.isFixed || scan.entries[Int(scan.entries[index].parent)].status.isFixed
  }

  /// Returns the immutable or append-only entry that prevents the deletion of an entry.
  private func holder(ofFlagsFixing index: Int) -> Int {
    scan.entries[index].status.isFixed ? index : Int(scan.entries[index].parent)
  }

  /// Returns the reason why an entry may not be deleted, whatever unit it belongs to, or nil if it
  /// may.
  private func conflict(_ index: Int) -> PurgePlan.Conflict? {
    let entry = scan.entries[index]
    if entry.status.isMountPoint { return .mount }
    if scan.ownDirectories.contains(index) { return .own }
    let verdict = entry.verdicts.keep
    guard let terms = verdict.purge.terms else { return .never }
    if entry.status.kind == .symlink, parents.contains(scan.pathComponents(index)) { return .moved }
    // Another name of the file may be in precious data.
    if terms.action == .truncate, entry.status.kind == .file, entry.status.links > 1 {
      return .linked
    }
    if entry.status.kind == .file, isMarkFile(index) { return .mark }
    switch verdict.dataClass {
    case .cache, .temporary: return nil
    default:
      let decision = policy.purgeDecision(on: scan.query(index), scanStart: scanStart)
      return decision.allowsLoss ? nil : .precious(verdict.dataClass)
    }
  }

  private func isMarkFile(_ index: Int) -> Bool {
    markFiles.contains { mark in
      scan.withName(index) { name in mark.withSpan { name.hasSameBytes(as: $0) } }
    }
  }

  // MARK: - Directories

  /// Adds a directory that is one unit, because a rule says so or its files belong together.
  /// Returns false if its content has to be examined instead.
  private mutating func addDirectory(_ index: Int) -> Bool {
    let entry = scan.entries[index]
    if entry.status.isMountPoint || scan.ownDirectories.contains(index) {
      conflicts[Int32(index)] = entry.status.isMountPoint ? .mount : .own
      return true
    }
    guard let terms = entry.verdicts.keep.purge.terms,
      terms.unit == .directory || IndivisibleDirectory.isOne(index, in: scan)
    else { return false }
    var (sum, fixedEntries) = (Totals(), [Int]())
    if let blocker = sumDirectory(index, &sum, fixed: &fixedEntries) {
      conflicts[Int32(index)] = .holds(scan.logicalPath(blocker))
    } else if terms.action == .truncate, let whole = indivisibleDirectory(in: index) {
      // Its files would be emptied one by one and remain.
      if whole != index { conflicts[Int32(index)] = .holds(scan.logicalPath(whole)) }
      conflicts[Int32(whole)] = .indivisible
    } else if sum.files > 0, !addFixed(fixedEntries, of: index, terms) {
      append(index, as: .directory, sum: sum)
    }
    return true
  }

  /// Returns the directory, or one in it, whose files belong together; nil if there is none.
  private func indivisibleDirectory(in top: Int) -> Int? {
    var pending = [top]
    while let directory = pending.popLast() {
      if IndivisibleDirectory.isOne(directory, in: scan) { return directory }
      pending += scan.entries[directory].children.filter { child in
        scan.entries[child].status.kind == .directory
      }
    }
    return nil
  }

  /// Records the entries of a directory unit that only their flags keep from being deleted, and
  /// which therefore keep the whole unit. Returns whether there are any.
  private mutating func addFixed(
    _ found: [Int], of top: Int, _ terms: PurgeDisposition.Terms
  ) -> Bool {
    for index in found {
      record(.fixed(scan.logicalPath(holder(ofFlagsFixing: index))), at: index)
    }
    if let first = found.first, first != top {
      conflicts[Int32(top)] = .holds(scan.logicalPath(first))
    }
    // Before its deletion, the unit is moved to a directory that is created in the container's own
    // directory.
    guard terms.action != .truncate, scan.entries[0].status.isFixed else { return !found.isEmpty }
    fixed.insert(0)
    if found.isEmpty { conflicts[Int32(top)] = .fixed(scan.logicalPath(0)) }
    return true
  }

  /// Adds up the content of a directory. Returns the first entry that may not be deleted, or nil.
  /// Entries that only their flags keep from being deleted are added to `fixedEntries`.
  private func sumDirectory(
    _ top: Int, _ sum: inout Totals, fixed fixedEntries: inout [Int]
  ) -> Int? {
    var pending = [top]
    while let directory = pending.popLast() {
      for index in [directory] + Array(scan.entries[directory].children) {
        if index != directory || directory == top {
          let found = conflict(index, of: top)
          if let found, found.isFixed {
            // The first of the entries that one directory's flags keep represents all of them.
            let holder = holder(ofFlagsFixing: index)
            let isFirst = fixedEntries.last.map { self.holder(ofFlagsFixing: $0) } != holder
            if holder == index || isFirst { fixedEntries.append(index) }
          } else if let found, found != .mark {
            // A marker file in the directory is deleted with it.
            return index
          }
          add(index, to: &sum)
        }
        if index != directory, scan.entries[index].status.kind == .directory {
          pending.append(index)
        }
      }
    }
    sum.settleLinks()
    return nil
  }

  // MARK: - Sums

  private func add(_ index: Int, to sum: inout Totals) {
    let entry = scan.entries[index]
    let accessed = scan.accessTimes[index]
    // Listing a directory updates its access time, so only its modification time indicates use.
    let isDirectory = entry.status.kind == .directory
    sum.newest = max(
      sum.newest, entry.status.modified.seconds, isDirectory ? Int64.min : accessed ?? Int64.min)
    if let terms = entry.verdicts.keep.purge.terms {
      if sum.terms.map({ $0.order < terms.order }) ?? true { sum.terms = terms }
    }
    if !isDirectory { sum.files += 1 }
    if entry.status.links > 1, !isDirectory {
      sum.links[entry.status.identity, default: (0, entry.status)].count += 1
      sum.hasLinks = true
    } else {
      let own = entry.status.allocated
      sum.bytes += own - min(own, shared[index] ?? 0)
    }
  }

  private mutating func append(_ index: Int, as kind: PurgeUnit.Kind, sum: Totals) {
    var sum = sum
    if sum.hasLinks { sum.settleLinks() }
    let verdict = scan.entries[index].verdicts.keep
    guard let own = verdict.purge.terms, let reluctant = sum.terms else { return }
    var terms = own
    (terms.order, terms.when) = (reluctant.order, reluctant.when)
    if kind == .directory { terms.unit = .directory }
    units.append(
      PurgeUnit(
        kind: kind, terms: terms, dataClass: verdict.dataClass, newest: sum.newest,
        bytes: sum.bytes, files: sum.files, container: number, entry: Int32(index),
        hasLinks: sum.hasLinks))
  }

  // MARK: - Parts

  /// The totals of a unit.
  private struct Totals {
    var bytes: UInt64 = 0
    var files: Int32 = 0
    var newest = Int64.min
    /// The terms with the largest order.
    var terms: PurgeDisposition.Terms?
    var hasLinks = false
    /// The hard-linked files of the unit, with the number of their names in it.
    var links: [FileIdentity: (count: UInt32, status: FileStatus)] = [:]

    /// Counts the files whose names are all in the unit.
    mutating func settleLinks() {
      for (count, status) in links.values where count == status.links { bytes += status.allocated }
      links = [:]
    }
  }

  /// The databases among the files of one directory: files with companions next to them.
  private struct Databases {
    private var owners: [Int: [Int]] = [:]
    private var members: Set<Int> = []

    init(_ children: Range<Int>, _ scan: ContainerScan) {
      var byName: [[UInt8]: Int] = [:]
      for index in children where scan.withName(index, DatabaseMember.mayBeSidecar) {
        guard scan.entries[index].status.kind == .file,
          let owner = DatabaseMember.owner(of: scan.name(index))
        else { continue }
        if byName.isEmpty {
          for other in children where scan.entries[other].status.kind == .file {
            byName[scan.nameBytes(other)] = other
          }
        }
        guard let database = byName[Array(owner.database.bytes)] else { continue }
        owners[database, default: []].append(index)
        members.insert(index)
      }
    }

    func isCompanion(_ index: Int) -> Bool { !members.isEmpty && members.contains(index) }

    /// Returns the companions of a database, the log first.
    func companions(of index: Int) -> [Int] { owners.isEmpty ? [] : owners[index]?.sorted() ?? [] }
  }
}

extension ContainerScan {
  /// Returns the components of an entry's path in the container, in the form of the policy's paths.
  func pathComponents(_ index: Int) -> [[UInt8]] { path(index).components.map { Array($0.bytes) } }
}
