internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// Returns a warning if the source is empty while its last snapshot has apps or files. Usually
  /// its disk is not mounted, and the mount point is an empty directory. The snapshot is made, but
  /// each later one is empty, too, and a retention rule would in time remove those that have the
  /// data. Once the last snapshot is empty, there is no warning.
  func lossOfEverything(since earlier: EarlierSnapshot) -> PathRemark? {
    guard let stored = earlier.stored, !request.isPart, plan.unreadable.isEmpty else { return nil }
    let (snapshot, id) = (stored.snapshot, stored.id.hex.prefix(8))
    if plan.device.layout == .folder {
      guard let source = plan.scans.first, plan.scans.allSatisfy({ $0.entries.count == 1 }),
        snapshot.totals.files > 0
      else { return nil }
      return PathRemark(
        path: source.container.logicalPrefix,
        remark: "it is empty, while the last snapshot (\(id)) has "
          + "\(Self.count(snapshot.totals.files, "file")): check that its disk is mounted")
    }
    guard let loss = lossOfApps(since: snapshot) else { return nil }
    return PathRemark(
      path: plan.device.root,
      remark: "\(loss.missing) was found there, while the last snapshot (\(id)) has "
        + "\(loss.stored): check that its disk is mounted")
  }

  /// Returns phrases for what the device lacks and for the last snapshot's amount of it; nil if the
  /// device has apps with data. Installed Flatpaks and snaps are known from the system, and a
  /// user's settings of Flatpaks and the system's data of snaps are elsewhere: they say nothing
  /// about the device's directory.
  private func lossOfApps(since snapshot: Snapshot) -> (missing: String, stored: String)? {
    if plan.device.apps.isEmpty, !snapshot.apps.isEmpty {
      return ("no app", Self.count(UInt64(snapshot.apps.count), "app"))
    }
    // The user may have moved a directory to another disk, with a link in its place.
    let root = plan.device.root
    let hasOwn = plan.device.containers.contains {
      !$0.path.isAbsolute || $0.absolutePath.isWithin(root)
    }
    if hasOwn { return nil }
    let stored = snapshot.device.containers.filter { $0.realPath.isWithin(snapshot.device.root) }
    if stored.isEmpty { return nil }
    let directories = stored.count == 1 ? "directory" : "directories"
    return ("no data of an app", "\(stored.count) \(directories) of app data")
  }

  private static func count(_ number: UInt64, _ noun: String) -> String {
    number == 1 ? "1 \(noun)" : "\(number) \(noun)s"
  }
}
