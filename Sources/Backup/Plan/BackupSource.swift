internal import ArchiveStore
internal import DeviceDiscovery
internal import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The source of a backup: a device, the policy for its data, and the apps to include.
package struct BackupSource: Sendable {
  package var device: Device
  private let policy: CompiledPolicy
  /// The apps to back up, with the groups that they may share (default: the whole device).
  package var apps = AppNames()
  /// Whether file systems mounted in the directories are included.
  package var crossesMounts = false
  /// Whether the device is locked: files that cannot be read while it is are not opened.
  package var isLocked = false
  /// The destination; the policy may keep other data for another one.
  private let destination: Destination
  /// The source of the verdicts that select the data: this program or the platform itself.
  package var view = Verdicts.View.keep
  /// The number of threads that scan (default: one for each processor).
  package var workers: Int?

  /// Creates the source of a backup of a whole device.
  package init(_ device: Device, policy: CompiledPolicy, for destination: Destination) {
    self.device = device
    self.policy = policy
    self.destination = destination
  }

  /// Scans the source and returns the plan of its backup.
  ///
  /// - Parameter excluded: directories that are never part of a backup (`ownDirectories`).
  /// - Throws: `ModelError` if the device has none of the apps, or for an ambiguous name;
  ///   `OperationError`: `interrupted`.
  package func plan(
    excluding excluded: Set<FileIdentity>, isStopping: @escaping @Sendable () -> Bool
  ) throws -> BackupPlan {
    BackupPlan.make(
      try scan(excluding: excluded, knowing: nil, isStopping: isStopping).scan)
  }

  /// Scans the source.
  ///
  /// - Parameter marks: the marks that earlier scans found; nil to look for marks on each entry.
  func scan(
    excluding excluded: Set<FileIdentity>, knowing marks: ExclusionMarkCache?,
    isStopping: @escaping @Sendable () -> Bool
  ) throws -> (scan: DeviceScan, part: Part) {
    var options = ScanOptions(
      destination: destination, excluded: excluded, view: view,
      isStopping: isStopping)
    options.crossesMounts = crossesMounts
    options.isLocked = isLocked
    if let workers { options.workers = workers }
    let device = device.stating(groupsOf: policy)
    let part = Part(of: device, try apps.apps(of: device))
    let scan = DeviceScan.run(
      device, policy: policy, options: options, knowing: marks, where: part.has)
    if scan.isInterrupted { throw OperationError.interrupted }
    return (scan, part)
  }

  /// Returns the directories that are never part of a backup: the repository's, if it exists, and
  /// the program's in the cache directory.
  package static func ownDirectories(
    storage: FileIdentity?, cache: ByteString?
  ) -> Set<FileIdentity> {
    let cache = cache?.appending("sandboxctl")
    let identity = cache.flatMap { try? Directory.open(path: $0).status().identity }
    return Set([storage, identity].compactMap(\.self))
  }
}

extension BackupSource {
  /// The containers of some apps and of the groups they may share; without apps, all containers of
  /// a device.
  struct Part {
    private let paths: Set<ByteString>
    private let identifiers: [String]

    init(of device: Device, _ apps: [App]) {
      identifiers = Set(apps.map(\.identifier.description)).sorted()
      paths = Set(
        apps.flatMap { app in
          device.containers(of: app).map(\.logicalPrefix)
            + device.groups(of: app).map(\.container.logicalPrefix)
        })
    }

    /// Whether it is only a part of the device.
    var isPart: Bool { !identifiers.isEmpty }

    /// The scope to record in the snapshot.
    var scope: Scope { isPart ? .apps(identifiers) : .device }

    func has(_ container: Container) -> Bool { !isPart || paths.contains(container.logicalPrefix) }
  }
}
