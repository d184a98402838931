internal import ArchiveStore
internal import DeviceDiscovery
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// The maximum number of times that one run scans and reads the source.
  static let rounds = 3

  /// Reads all entries that the plan includes. If an entry is no longer where the scan found it,
  /// the source is scanned again. If the entry was moved or replaced, another round reads the
  /// source in its new state. The same applies if the files of a LevelDB store were replaced, but
  /// then only the container of the store is scanned again. Entries read in earlier rounds are
  /// reused, as after an interruption.
  ///
  /// - Returns: the operation of the last round and its run.
  func readAll(
    into session: WritingSession, state: SourceState, earlier: EarlierSnapshot
  ) throws -> (BackupOperation, BackupRun) {
    var (operation, run) = (
      self, try prepare(for: session, state: state, earlier: earlier, isFirst: true)
    )
    try work(run)
    for round in 1...Self.rounds {
      let (vanished, stores) = (VanishedEntries(run), ManifestStores.changed(in: run))
      if vanished.isEmpty, stores.isEmpty { break }
      let scan = try operation.rescan(after: run, vanished, stores)
      let moved = scan.map { vanished.paths(in: $0) } ?? []
      if moved.isEmpty, stores.isEmpty { break }
      guard let scan, round < Self.rounds else {
        run.record { $0.record(moved: moved, stores: stores) }
        break
      }
      try run.checkpoint()
      operation = operation.next(scan, vanished)
      try request.classLimit.require(operation.classRuns, of: plan.device.root)
      let databases = run.findings.databases
      run = try operation.prepare(
        for: session, state: run.source.reopened(), earlier: earlier, isFirst: false)
      try operation.work(run)
      operation.record(databases, in: run)
    }
    return (operation, run)
  }

  /// Scans the plan's containers again; returns nil if the plan was made without a scan. If only
  /// of stores vanished, scans only their containers: stores of running apps are often busy, and
  /// their files are not moved elsewhere. Containers in which the run found logs that the scan
  /// lacks are also scanned: their databases are not read again without the logs.
  private func rescan(
    after run: BackupRun, _ vanished: VanishedEntries, _ stores: [ByteString]
  ) throws -> DeviceScan? {
    var wanted = Set(plan.scans.map(\.container.logicalPrefix))
    let isPart = vanished.areAll(in: stores)
    if isPart {
      let added = run.findings.extras.map { run.trees.logicalPath(of: $0.owner) }
      wanted = wanted.filter { path in (stores + added).contains { $0.isWithin(path) } }
    }
    guard let scan = plan.rescan?(wanted) else { return nil }
    if scan.isInterrupted { throw OperationError.interrupted }
    return isPart ? plan.replacing(scan) : scan
  }

  /// Returns the operation of the next round, without the containers that were removed.
  private func next(_ scan: DeviceScan, _ vanished: VanishedEntries) -> BackupOperation {
    var scan = scan
    let removed = scan.containers.filter {
      $0.entries.isEmpty && vanished.hasRoot(of: $0.container)
    }.map(\.container)
    let isRemoved = Set(removed)
    scan.containers.removeAll { isRemoved.contains($0.container) }
    var next = BackupOperation(BackupPlan.make(scan), to: repository, request)
    next.removed = self.removed + removed
    return next
  }

  /// Keeps the records of databases that earlier rounds captured and this one did not read again.
  private func record(_ databases: [DatabaseRecord], in run: BackupRun) {
    let read = Set(run.findings.databases.map(\.path))
    let scanned = LogicalPathLookup(plan.scans)
    for record in databases
    where !read.contains(record.path) && scanned.entry(at: record.path) != nil {
      run.record { $0.record(record) }
    }
  }

  /// Reports containers as unreadable if their directories disappeared between the discovery of the
  /// device and the reading but now exist elsewhere.
  ///
  /// The removal of an app is the user's decision. An app whose containers moved to other
  /// directories still exists (an update or a restart of a simulator assigns new UUIDs), but the
  /// snapshot lacks its data.
  func reportMovedContainers(of run: BackupRun, in report: inout BackupReport) {
    let missing = run.findings.missing
    let vanished =
      removed + run.trees.filter { missing.contains($0.id(0)) }.map(\.scan.container)
    guard !vanished.isEmpty,
      let device = try? Device.find(root: plan.device.root, layout: plan.device.layout)
    else { return }
    for container in vanished {
      guard let found = device.container(container.logical),
        found.absolutePath != container.absolutePath
      else { continue }
      let path = container.logicalPrefix
      report.warnings.removeAll { $0.path == path }
      report.unreadable.append(
        PathRemark(
          path: path,
          remark: "its directory was renamed during the backup: run the backup again"))
    }
  }
}

/// Entries that the run did not find where the scan had found them, and entries that vanished
/// during the scan.
///
/// A renamed or moved entry keeps its inode, so a second scan finds it; a replaced entry is found
/// by its path. Entries that a second scan does not find were deleted.
struct VanishedEntries {
  private let trees: [Container: SelectedTree]
  /// The topmost vanished entries.
  private let entries: Set<EntryID>
  private let byContainer: SelectedTree.MissingEntries.ByContainer
  /// The identities of the topmost entries, of all included entries below them, and of the entries
  /// that the scan listed but did not find under any name.
  private var identities: Set<FileIdentity> = []

  init(_ run: BackupRun) { self.init(run.findings.vanished, of: run.trees) }

  init(_ entries: Set<EntryID>, of trees: [SelectedTree]) {
    self.trees = Dictionary(trees.map { ($0.scan.container, $0) }) { first, _ in first }
    self.entries = entries
    identities = Self.unseen(in: trees)
    byContainer = Dictionary(grouping: entries, by: \.container)
    for tree in trees where byContainer[Int32(tree.number)] != nil {
      var isMissing = SelectedTree.MissingEntries(tree, byContainer)
      for (index, entry) in tree.scan.entries.enumerated()
      where isMissing.check(index) && entry.selection != .excluded {
        identities.insert(entry.status.identity)
      }
    }
  }

  /// Returns the entries that vanished during the scan and that it did not find under another name.
  /// A file with several links may have lost a name even if the scan found another one.
  private static func unseen(in trees: [SelectedTree]) -> Set<FileIdentity> {
    var unseen = Set(trees.lazy.flatMap(\.scan.vanished).map(\.identity))
    if unseen.isEmpty { return unseen }
    for tree in trees {
      for entry in tree.scan.entries where !entry.isStale && unseen.contains(entry.status.identity)
      {
        if entry.status.kind == .directory || entry.status.links == 1 {
          unseen.remove(entry.status.identity)
        }
      }
    }
    return unseen
  }

  var isEmpty: Bool { entries.isEmpty && identities.isEmpty }

  /// Whether all of them were entries of directories with these logical paths.
  func areAll(in directories: [ByteString]) -> Bool {
    let directories = Set(directories)
    return trees.values.allSatisfy { tree in
      let entries = byContainer[Int32(tree.number)] ?? []
      return entries.allSatisfy { id in
        guard id.index > 0 else { return false }
        let parent = tree.scan.entries[Int(id.index)].parent
        return directories.contains(tree.scan.logicalPath(Int(parent)))
      }
        && tree.scan.vanished.allSatisfy { entry in
          directories.contains(tree.scan.container.logicalPrefix.appending(entry.path).parent)
        }
    }
  }

  /// Whether the directory of a container has vanished.
  func hasRoot(of container: Container) -> Bool {
    trees[container].map { entries.contains($0.id(0)) } ?? false
  }

  /// Returns the logical paths at which a second scan found the entries; only the topmost ones.
  /// Entries that vanished during that scan, too, are still moving.
  func paths(in scan: DeviceScan) -> [ByteString] {
    scan.containers.flatMap { container in
      found(in: container).map { container.logicalPath($0) }
        + container.vanished.filter { identities.contains($0.identity) }
        .map { container.container.logicalPrefix.appending($0.path) }
    }
  }

  private func found(in scan: ContainerScan) -> [Int] {
    guard let tree = trees[scan.container] else { return [] }
    let (now, before) = (EntryLookup(scan), EntryLookup(tree.scan))
    var found = Set(
      (byContainer[Int32(tree.number)] ?? []).lazy
        .compactMap { now.index(of: tree.scan.path(Int($0.index))) }
        .filter { scan.entries[$0].selection != .excluded })
    for (index, entry) in scan.entries.enumerated()
    where entry.selection != .excluded && identities.contains(entry.status.identity) {
      let earlier = before.index(of: scan.path(index))
      if !isOtherLink(entry, at: earlier, of: tree) { found.insert(index) }
    }
    return found.filter { $0 == 0 || !found.contains(Int(scan.entries[$0].parent)) }.sorted()
  }

  /// Whether an entry already had this name, under which it is read: a hard link, or an entry that
  /// the scan listed under two names.
  ///
  /// - Parameter earlier: the entry that the first scan found at its path, or nil if there is none.
  private func isOtherLink(
    _ entry: ScannedEntry, at earlier: Int?, of tree: SelectedTree
  ) -> Bool {
    guard let earlier else { return false }
    let known = tree.scan.entries[earlier]
    return known.status.identity == entry.status.identity && !known.isStale
      && !entries.contains(tree.id(earlier))
  }
}
