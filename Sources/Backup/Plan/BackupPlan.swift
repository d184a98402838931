package import ArchiveStore
package import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The entries that a backup stores and excludes, determined by a scan before anything is written.
package struct BackupPlan: Sendable {
  package let device: Device
  /// When the scan began. Later changes may or may not be in the backup.
  let began: Timestamp
  /// The scanned containers, in the order of their logical paths.
  package let scans: [ContainerScan]
  /// The policy that the scan applied.
  package let policy: PolicyRecord
  /// The totals by app, group and directory, in the order of their logical paths.
  package let summaries: [OwnerSummary]
  /// The exclusions by rule: the topmost excluded directories, and the single files by container.
  package let excluded: [Exclusion]
  /// The bundles that are excluded only because the repository is in a cloud.
  package let bundlesOutsideCloud: BundlesOutsideCloud
  /// Scans containers of the plan again, by their logical paths.
  var rescan: (@Sendable (Set<ByteString>) -> DeviceScan)?

  /// Creates the plan of a scan.
  package static func make(_ scan: DeviceScan) -> BackupPlan {
    BackupPlan(
      device: scan.device, began: scan.began, scans: scan.containers,
      policy: PolicyRecord(name: scan.policy.name, digest: scan.policy.digest),
      summaries: OwnerSummary.make(scan), excluded: scan.exclusions(),
      bundlesOutsideCloud: BundlesOutsideCloud(scan), rescan: scan.rescan
    )
  }

  /// Returns a later scan of some of the containers with the plan's scans of the others.
  func replacing(_ later: DeviceScan) -> DeviceScan {
    let found = Dictionary(later.containers.map { ($0.container, $0) }) { first, _ in first }
    return DeviceScan(
      device: later.device, policy: later.policy, began: began,
      containers: scans.map { found[$0.container] ?? $0 }, isInterrupted: later.isInterrupted,
      marks: later.marks, options: later.options)
  }

  /// The data classes that the snapshot records.
  var classRuns: [ClassRun] { scans.flatMap(\.classRuns) }

  /// Directories of the layout that could not be read, with any containers in them. The scan of a
  /// container reports the unreadable entries in it. Absolute paths lie outside the device, except
  /// for the settings of Flatpak apps.
  private var unreadableDirectories: [PathRemark] {
    device.findings.filter { finding in
      [.unreadable, .foreignLink].contains(finding.code)
        && (!finding.path.isAbsolute || finding.path.lastComponent == "overrides")
        && !device.containers.contains { finding.path.isWithin($0.path) }
    }.map { PathRemark(path: $0.path, remark: $0.reason) }
  }

  /// Included entries that the scan could not examine.
  package var unreadable: [PathRemark] {
    unreadableDirectories + scans.flatMap(\.unreadableByLogicalPath)
  }

  /// Warnings about the plan that the snapshot records.
  package var warnings: [PathRemark] {
    let names = device.findings.filter { $0.code == .unusableName }.map {
      PathRemark(path: $0.path, remark: $0.reason)
    }
    return names
      + scans.flatMap { scan in
        let mounts = scan.mounts.map { path in
          PathRemark(
            path: path,
            remark: """
              another file system is mounted there and is skipped ('backup --cross-mounts' \
              includes it)
              """)
        }
        let repositories = scan.repositories.map { path in
          PathRemark(path: path, remark: "it is a sandboxctl repository, which is never backed up")
        }
        return (mounts + repositories).map {
          PathRemark(path: scan.container.logicalPrefix.appending($0.path), remark: $0.remark)
        }
      }
  }

  /// Refuses a plan whose snapshot would be useless because it contains only the program's own
  /// directories, or impossible because it has more data classes than a snapshot can record.
  package func requireUseful() throws(OperationError) {
    try ClassLimit().require(classRuns, of: device.root)
    try requireSource()
  }

  /// Refuses a source that is one of the program's own directories, which every backup excludes.
  func requireSource() throws(OperationError) {
    guard let first = scans.first, scans.allSatisfy({ $0.ownDirectories.contains(0) }) else {
      return
    }
    throw OperationError(
      .failed, code: .sourceIsRepository, "back up", subject: first.container.absolutePath,
      reason: "it is a sandboxctl repository or the program's own directory",
      hint: "back up another directory or app, or copy a repository with 'cp -a'")
  }

  /// The totals of all included entries.
  package var includedTotals: EntryTotals {
    summaries.reduce(into: EntryTotals()) { $0.add($1.included) }
  }

  /// Returns the totals of the included files that cannot be read while the device is locked.
  package func protectedTotals() -> EntryTotals {
    var totals = EntryTotals()
    for scan in scans {
      var reader = ProtectionReader(scan)
      for (index, entry) in scan.entries.enumerated()
      where entry.status.kind == .file && entry.selection != .excluded {
        guard let protection = reader.protection(of: index), !protection.isReadableWhileLocked
        else { continue }
        totals.add(entry.status)
      }
    }
    return totals
  }

  /// The totals of all excluded entries.
  package var excludedTotals: EntryTotals {
    summaries.reduce(into: EntryTotals()) { sum, owner in
      for total in owner.excluded { sum.add(total.totals) }
    }
  }
}

extension BackupPlan {
  /// The included and excluded totals of one app, group or directory.
  package struct OwnerSummary: Sendable {
    /// The logical path of the owner: `apps/com.example.app`, `groups/…`, `folders/…`.
    package let path: ByteString
    package internal(set) var included = EntryTotals()
    /// The excluded totals by data class, the largest first.
    package internal(set) var excluded: [(dataClass: DataClass, totals: EntryTotals)] = []

    static func make(_ scan: DeviceScan) -> [OwnerSummary] {
      var order: [ByteString] = []
      var included: [ByteString: EntryTotals] = [:]
      var excluded: [ByteString: [DataClass: EntryTotals]] = [:]
      for container in scan.containers {
        let owner = container.container.logicalPrefix.subject
        if included[owner] == nil { order.append(owner) }
        var totals = included[owner] ?? EntryTotals()
        var classes = excluded.removeValue(forKey: owner) ?? [:]
        for entry in container.entries where entry.status.kind == .file {
          if entry.selection == .excluded {
            classes[entry.verdicts.keep.dataClass, default: EntryTotals()].add(entry.status)
          } else {
            totals.add(entry.status)
          }
        }
        (included[owner], excluded[owner]) = (totals, classes)
      }
      return order.map { owner in
        OwnerSummary(
          path: owner, included: included[owner] ?? EntryTotals(),
          excluded: (excluded[owner] ?? [:]).map { (dataClass: $0.key, totals: $0.value) }
            .sorted {
              ($1.totals.bytes, $0.dataClass.rawValue) < ($0.totals.bytes, $1.dataClass.rawValue)
            })
      }
    }
  }
}
