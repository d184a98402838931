internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// Returns a warning if the source has nothing while its last snapshot has apps or files. That is
  /// rarely meant: usually its disk is not mounted, and the mount point is an empty directory. The
  /// snapshot is made, but each later one is as empty, and a retention rule would in time remove
  /// those that have the data. Once the last snapshot is empty, there is no warning.
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
    guard plan.device.apps.isEmpty, !snapshot.apps.isEmpty else { return nil }
    return PathRemark(
      path: plan.device.root,
      remark: "no app was found there, while the last snapshot (\(id)) has "
        + "\(Self.count(UInt64(snapshot.apps.count), "app")): check that its disk is mounted")
  }

  private static func count(_ number: UInt64, _ noun: String) -> String {
    number == 1 ? "1 \(noun)" : "\(number) \(noun)s"
  }
}
