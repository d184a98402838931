internal import SandboxModel
internal import SystemIO

/// Containers whose directories went between the look at the device and the reading.
///
/// An app that was removed is the user's business. One whose containers got other directories is still
/// there (an update or a restart of a simulator gives new UUIDs), and the snapshot lacks its data:
/// that is told as what could not be read.
struct VanishedContainers {
  private let moved: [Container]

  /// - Parameter earlier: those that were gone before the last scan of the run.
  init(_ plan: BackupPlan, _ run: BackupRun, earlier: [Container]) {
    let missing = run.findings.missing
    let gone =
      earlier + run.trees.filter { missing.contains($0.id(0)) }.map(\.scan.container)
    guard !gone.isEmpty,
      let device = try? Device.find(root: plan.device.root, layout: plan.device.layout)
    else {
      moved = []
      return
    }
    moved = gone.filter { container in
      device.container(container.logical).map { $0.absolutePath != container.absolutePath } ?? false
    }
  }

  /// Says of each that it is not in the snapshot.
  func tell(_ report: inout BackupReport) {
    for container in moved {
      let path = container.logicalPrefix
      report.warnings.removeAll { $0.path == path }
      report.unreadable.append(
        PathRemark(
          path: path,
          remark: "its directory was renamed during the backup: run the backup once more"))
    }
  }
}
