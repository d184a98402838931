public import ArchiveStore
public import PolicyEngine
public import SandboxModel
public import SystemIO

/// What a backup will store and what it will leave out: from a scan, before anything is written.
public struct BackupPlan: Sendable {
  public let device: Device
  /// When the scan began: what changed after that may be in the backup or not.
  let began: Timestamp
  /// What was found, container by container, in the order of their logical paths.
  public let scans: [ContainerScan]
  /// The policy that decided.
  public let policy: PolicyRecord
  /// The same by app, group and directory, in the order of their logical paths.
  public let summaries: [OwnerSummary]
  /// What is left out, by rule: the topmost left-out directories, and single files by container.
  public let excluded: [Exclusion]
  /// Scans containers of the plan again, by their logical paths.
  var rescan: (@Sendable (Set<ByteString>) -> DeviceScan)?

  /// Makes the plan of a scan.
  public static func make(_ scan: DeviceScan) -> BackupPlan {
    BackupPlan(
      device: scan.device, began: scan.began, scans: scan.containers,
      policy: PolicyRecord(name: scan.policy.name, digest: scan.policy.digest),
      summaries: OwnerSummary.make(scan), excluded: ExclusionSummary.make(scan), rescan: scan.rescan
    )
  }

  /// Directories of the layout that could not be read, with whatever containers are in them. What cannot
  /// be read in a container is found by its scan; what is absolute lies outside the device, but for
  /// the settings of Flatpak apps.
  private var unreadableDirectories: [PathRemark] {
    device.findings.filter { finding in
      [.unreadable, .foreignLink].contains(finding.code)
        && (!finding.path.isAbsolute || finding.path.lastComponent == "overrides")
        && !device.containers.contains { finding.path.isWithin($0.path) }
    }.map { PathRemark(path: $0.path, remark: $0.reason) }
  }

  /// What is kept and could not even be looked at.
  public var unreadable: [PathRemark] {
    unreadableDirectories
      + scans.flatMap { scan in
        scan.unreadable.map {
          PathRemark(path: scan.container.logicalPrefix.appending($0.path), remark: $0.remark)
        }
      }
  }

  /// What of the plan is to be said in the snapshot.
  public var warnings: [PathRemark] {
    let names = device.findings.filter { $0.code == .unusableName }.map {
      PathRemark(path: $0.path, remark: $0.reason)
    }
    return names
      + scans.flatMap { scan in
        let mounts = scan.mounts.map { path in
          PathRemark(
            path: path,
            remark: """
              another file system is mounted there, which is not entered ('backup --cross-mounts' does)
              """)
        }
        let repositories = scan.repositories.map { path in
          PathRemark(path: path, remark: "it is a repository of sandboxctl, which is in no backup")
        }
        return (mounts + repositories).map {
          PathRemark(path: scan.container.logicalPrefix.appending($0.path), remark: $0.remark)
        }
      }
  }

  /// Refuses what could make no snapshot that is worth one: of nothing but the program's own directories, or
  /// of more data classes than it can note.
  public func requireSense() throws(LifecycleError) {
    try ClassLimit().require(classRuns, of: device.root)
    try requireSource()
  }

  /// Refuses a source that is one of the program's own directories, which are left out of every backup.
  func requireSource() throws(LifecycleError) {
    guard let first = scans.first, scans.allSatisfy({ $0.ownDirectories.contains(0) }) else {
      return
    }
    throw LifecycleError(
      .failed,
      """
      cannot back up '\(first.container.absolutePath)': it is a repository of sandboxctl, or the \
      program's own directory
      """, hint: "name another directory or app; 'cp -a' copies a repository as it is")
  }

  /// Everything that is kept.
  public var kept: EntryTotals { summaries.reduce(into: EntryTotals()) { $0.add($1.kept) } }

  /// Everything that is left out.
  public var left: EntryTotals {
    summaries.reduce(into: EntryTotals()) { sum, owner in
      for total in owner.excluded { sum.add(total.totals) }
    }
  }
}

/// Files, and their bytes as the ends of the files say.
public struct EntryTotals: Sendable, Hashable, BitwiseCopyable {
  public var files = 0
  public var bytes: UInt64 = 0

  /// Makes totals of nothing.
  public init() {}

  /// Counts an entry, if it is a file.
  public mutating func add(_ status: FileStatus) {
    guard status.kind == .file else { return }
    files += 1
    bytes.addClamping(status.size)
  }

  /// Adds other totals.
  public mutating func add(_ other: EntryTotals) {
    files += other.files
    bytes.addClamping(other.bytes)
  }
}

/// What is kept and what is left out of one app, group or directory.
public struct OwnerSummary: Sendable {
  /// The logical path of the owner: `apps/com.example.app`, `groups/…`, `folders/…`.
  public let path: ByteString
  public internal(set) var kept = EntryTotals()
  /// By data class, the largest first.
  public internal(set) var excluded: [(dataClass: DataClass, totals: EntryTotals)] = []

  static func make(_ scan: DeviceScan) -> [OwnerSummary] {
    var order: [ByteString] = []
    var kept: [ByteString: EntryTotals] = [:]
    var left: [ByteString: [DataClass: EntryTotals]] = [:]
    for container in scan.containers {
      let owner = container.container.ownerPath
      if kept[owner] == nil { order.append(owner) }
      var totals = kept[owner] ?? EntryTotals()
      var classes = left.removeValue(forKey: owner) ?? [:]
      for entry in container.entries where entry.status.kind == .file {
        if entry.fate == .excluded {
          classes[entry.verdicts.keep.dataClass, default: EntryTotals()].add(entry.status)
        } else {
          totals.add(entry.status)
        }
      }
      (kept[owner], left[owner]) = (totals, classes)
    }
    return order.map { owner in
      OwnerSummary(
        path: owner, kept: kept[owner] ?? EntryTotals(),
        excluded: (left[owner] ?? [:]).map { (dataClass: $0.key, totals: $0.value) }
          .sorted {
            ($1.totals.bytes, $0.dataClass.rawValue) < ($0.totals.bytes, $1.dataClass.rawValue)
          })
    }
  }
}

extension Container {
  /// The logical path of the app, group or directory that it belongs to.
  var ownerPath: ByteString {
    ByteString(
      logicalPrefix.components.prefix(2).map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }
}
