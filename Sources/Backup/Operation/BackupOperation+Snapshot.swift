internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// Returns the snapshot of the stored entries (docs/repository-format.md, Snapshot).
  func makeSnapshot(
    of tree: TreeReference, after earlier: EarlierSnapshot, report: BackupReport
  ) -> Snapshot {
    var snapshot = Snapshot(
      repository: repository.id, source: SourceIdentity.digest(of: plan.device),
      sequence: earlier.sequence + 1, time: request.now?() ?? plan.began, host: Host.name,
      user: Host.userName(Host.userID) ?? "\(Host.userID)", device: deviceRecord(),
      scope: request.scope, reason: request.reason, policy: plan.policy, tree: tree,
      program: request.program)
    snapshot.parent = earlier.stored?.id
    snapshot.tags = request.tags
    snapshot.apps = appRecords()
    snapshot.totals = totals(report)
    snapshot.classes = classRuns
    (snapshot.users, snapshot.groups) = nameTables()
    snapshot.excluded = NoteLimit.limited(plan.excluded)
    snapshot.unreadable = NoteLimit.limited(report.unreadable + report.waiting.map(\.note))
    snapshot.warnings = NoteLimit.limited(report.warnings)
    snapshot.mounts = plan.scans.flatMap { scan in
      scan.mounts.map { scan.container.logicalPrefix.appending($0) }
    }
    snapshot.databases = NoteLimit.limited(report.databases)
    snapshot.durationMilliseconds = UInt64(report.seconds * 1000)
    return snapshot
  }

  private func deviceRecord() -> DeviceRecord {
    let device = plan.device
    return DeviceRecord(
      identity: device.identity.description,
      platform: device.platform?.description ?? device.layout.rawValue,
      layout: device.layout.rawValue, root: device.root, osVersion: device.osVersion?.description,
      containers: device.containers.map {
        DeviceRecord.Container(
          path: $0.logicalPrefix, uuid: $0.uuid.flatMap { $0.isUUID ? $0.description : nil },
          revision: $0.revision?.description,
          realPath: $0.absolutePath)
      })
  }

  private func appRecords() -> [AppRecord] {
    let apps = plan.device.apps.filter { app in
      guard case .apps(let wanted) = request.scope else { return true }
      return wanted.contains(app.identifier.description)
        || app.identifier.bytes.utf8.map { wanted.contains($0) } ?? false
    }
    return apps.map { app in
      var record = AppRecord(
        identifier: app.identifier.description, name: app.displayName?.description,
        version: app.version?.description, build: app.build?.description,
        containers: plan.device.containers(of: app).map(\.logicalPrefix))
      record.groups = app.groups.map {
        AppRecord.Group(identifier: $0.group.description, isKnown: $0.isKnown)
      }
      record.flatpak = app.installation.map(AppRecord.Flatpak.init)
      return record
    }
  }

  private func totals(_ report: BackupReport) -> Totals {
    var totals = Totals()
    totals.entries = UInt64(report.entries)
    totals.files = UInt64(report.files)
    totals.bytes = report.bytes
    totals.classes = report.classes
    return totals
  }

  /// Returns the names of the users and groups that own stored entries, by number.
  private func nameTables() -> (users: [NameRecord], groups: [NameRecord]) {
    var users: Set<UInt32> = []
    var groups: Set<UInt32> = []
    for scan in plan.scans {
      var last: (user: UInt32, group: UInt32)?
      for entry in scan.entries where entry.selection != .excluded {
        let owners = (user: entry.status.user, group: entry.status.group)
        if let last, last == owners { continue }
        last = owners
        users.insert(owners.user)
        groups.insert(owners.group)
      }
    }
    return (
      users.sorted().compactMap { id in Host.userName(id).map { NameRecord(id: id, name: $0) } },
      groups.sorted().compactMap { id in Host.groupName(id).map { NameRecord(id: id, name: $0) } }
    )
  }

  /// Removes the files that cannot be read while the device is locked from those to read, and adds
  /// their versions in the last snapshot. Returns remarks on versions that cannot be read.
  func removeLocked(
    from known: inout [UnchangedEntries], of trees: [SelectedTree], links: HardLinks,
    contents: ChangeDetector.Contents, earlier: [StoredSnapshot]
  ) -> [String] {
    let locked = LockedFiles(trees, known, links: links)
    if locked.isEmpty { return [] }
    let versions = EarlierVersions(in: earlier, contents: contents)
    locked.remove(from: &known, keeping: versions)
    return versions.remarks
  }

  /// Returns the snapshots that may have earlier versions of the source's files: the last ones of
  /// the same scope and of the whole device, and those in which the state recorded the containers.
  func earlierSnapshots(
    _ session: WritingSession, state: SourceState, earlier: EarlierSnapshot
  ) throws(StoreError) -> [StoredSnapshot] {
    var found = [earlier.stored].compactMap(\.self)
    if request.scope != .device {
      let device = try session.history(
        of: source, scope: .device, cache: request.cache.map { repository.headCache(in: $0) })
      found += [device.last].compactMap(\.self)
    }
    let recorded = Set(
      plan.scans.compactMap { state.container($0.container.logicalPrefix)?.snapshot })
    for id in recorded where session.holds(snapshot: id) && !found.contains(where: { $0.id == id })
    {
      if let stored = try? repository.snapshot(id) { found.append(stored) }
    }
    return found
  }

  /// The snapshots that earlier runs of a source made.
  struct EarlierSnapshot {
    /// The last snapshot of the same scope.
    let stored: StoredSnapshot?
    /// The greatest sequence number of the source's snapshots, 0 if there are none.
    let sequence: UInt64
    /// The identities of the devices that have snapshots.
    let devices: Set<String>
  }

  /// The directories of a snapshot above its containers: `apps`, `apps/<id>`,
  /// `apps/<id>/extensions`, …
  ///
  /// They exist on no device, so their metadata is the same in every snapshot: mode 0755, owner 0,
  /// time 0.
  struct LogicalTree {
    private enum Node {
      case container(TreeEntry)
      case directory([ByteString: Node])
    }

    private var root: [ByteString: Node] = [:]

    /// Adds a container's root at its logical path.
    mutating func add(_ entry: TreeEntry, at path: ByteString) {
      Self.add(entry, path.components[...], in: &root)
    }

    /// Stores the directories; returns the tree of the snapshot's root.
    func store(_ session: WritingSession) throws -> TreeReference {
      try Self.store(root, session)
    }

    private static func add(
      _ entry: TreeEntry, _ path: ArraySlice<ByteString>, in directory: inout [ByteString: Node]
    ) {
      guard let name = path.first else { return }
      if path.count == 1 {
        directory[name] = .container(entry.named(name))
        return
      }
      var inner: [ByteString: Node] = [:]
      if case .directory(let existing) = directory[name] { inner = existing }
      add(entry, path.dropFirst(), in: &inner)
      directory[name] = .directory(inner)
    }

    private static func store(
      _ directory: [ByteString: Node], _ session: WritingSession
    ) throws -> TreeReference {
      let entries = try directory.map { name, node in
        switch node {
        case .container(let entry): return entry
        case .directory(let inner):
          return TreeEntry(
            name: name, node: .directory(try store(inner, session)), permissions: 0o755)
        }
      }
      return try session.storeTree(entries)
    }
  }
}

extension AppRecord.Flatpak {
  fileprivate init(_ installation: App.FlatpakInstallation) {
    self.init(
      scope: installation.scope.rawValue, architecture: installation.architecture.description,
      branch: installation.branch.description, commit: installation.commit.description,
      origin: installation.origin?.description, url: installation.remoteURL?.description,
      runtime: installation.runtime?.description)
  }
}
