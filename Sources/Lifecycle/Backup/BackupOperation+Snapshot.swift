internal import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// The snapshot of what was stored (docs/repository-format.md, Snapshot).
  func makeSnapshot(
    _ tree: TreeReference, _ earlier: StoredSnapshot?, _ report: BackupReport
  ) -> Snapshot {
    var snapshot = Snapshot(
      repository: repository.id, source: SourceIdentity.digest(of: plan.device),
      sequence: (earlier?.snapshot.sequence ?? 0) + 1, time: request.now?() ?? Host.now(),
      host: Host.name,
      user: Host.userName(Host.userID) ?? "\(Host.userID)", device: deviceRecord(),
      reason: request.reason, policy: plan.policy, tree: tree, program: request.program)
    snapshot.parent = earlier?.id
    snapshot.tags = request.tags
    snapshot.apps = appRecords()
    snapshot.totals = totals(report)
    snapshot.classes = plan.scans.flatMap(\.classRuns)
    (snapshot.users, snapshot.groups) = nameTables()
    snapshot.leftOut = plan.leftOut
    snapshot.unreadable = report.unreadable.map { PathNote(path: $0.path, note: $0.remark) }
    snapshot.warnings = report.warnings.map { PathNote(path: $0.path, note: $0.remark) }
    snapshot.mounts = plan.scans.flatMap { scan in
      scan.mounts.map { scan.container.logicalPrefix.appending($0) }
    }
    snapshot.databases = report.databases
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
        ContainerRecord(
          path: $0.logicalPrefix, uuid: $0.uuid?.description, realPath: $0.absolutePath)
      })
  }

  private func appRecords() -> [AppRecord] {
    plan.device.apps.map { app in
      AppRecord(
        identifier: app.identifier.description, name: app.displayName?.description,
        version: app.version?.description, build: app.build?.description,
        containers: plan.device.containers(of: app).map(\.logicalPrefix))
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

  /// The names of the users and groups that own what is stored, by number.
  private func nameTables() -> (users: [NameRecord], groups: [NameRecord]) {
    var users: Set<UInt32> = []
    var groups: Set<UInt32> = []
    for scan in plan.scans {
      var last: (user: UInt32, group: UInt32)?
      for entry in scan.entries where entry.fate != .leftOut {
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
}

/// What tells one source of backups from another: the machine, the user, the root and the layout,
/// or the device's own identity where it has one.
enum SourceIdentity {
  static func digest(of device: Device) -> Digest {
    let parts: [ByteString] = [
      ByteString(device.identity.description), ByteString("\(Host.userID)"), device.root,
      ByteString(device.layout.rawValue),
    ]
    return Blake2b.hash(Array(parts.map(\.bytes).joined(separator: [0])))
  }
}

extension ContainerScan {
  /// Where the data class changes on the way down: a path has the class of the nearest of these
  /// that it lies in.
  var classRuns: [ClassRun] {
    entries.indices.compactMap { index in
      let entry = entries[index]
      guard entry.fate != .leftOut else { return nil }
      let name = entry.verdicts.keep.dataClass
      if index > 0, entries[Int(entry.parent)].verdicts.keep.dataClass == name { return nil }
      return ClassRun(path: logicalPath(index), name: name.rawValue)
    }
  }
}
