internal import DeviceDiscovery
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// Containers whose directories disappeared between the discovery of the device and the reading.
///
/// The removal of an app is the user's decision. An app whose containers moved to other directories
/// still exists (an update or a restart of a simulator assigns new UUIDs), but the snapshot lacks
/// its data, so it is reported as unreadable.
struct VanishedContainers {
  private let moved: [Container]

  /// - Parameter earlier: the containers that were removed before the last scan of the run.
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

  /// Reports each container as missing from the snapshot.
  func tell(_ report: inout BackupReport) {
    for container in moved {
      let path = container.logicalPrefix
      report.warnings.removeAll { $0.path == path }
      report.unreadable.append(
        PathRemark(
          path: path,
          remark: "its directory was renamed during the backup: run the backup again"))
    }
  }
}
