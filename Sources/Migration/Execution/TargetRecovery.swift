internal import DeviceDiscovery
package import DeviceTransaction
package import PolicyEngine
package import SandboxModel
internal import SystemIO

extension AppPairing.Side {
  /// Recovers interrupted operations on the devices that a migration to this side can change: the
  /// home itself and its Flatpaks or snaps, or the containers of macOS. A blocked recovery refuses
  /// only the app that it affects.
  ///
  /// - Parameters:
  ///   - compile: compiles the policy for a layout.
  ///   - isForced: whether apps may run.
  ///   - isPreview: whether the operations are only reported.
  ///   - notify: receives the report for each device with interrupted operations.
  package func recover(
    compile: (Layout) throws -> CompiledPolicy, isForced: Bool, isPreview: Bool,
    notify: (RecoveryReport, Device) -> Void
  ) throws -> [RecoveryReport] {
    try devices.compactMap { root, layout in
      if (try? InterruptedOperation.all(on: root))?.isEmpty == true { return nil }
      let device = try Device.find(root: root, layout: layout)
      let report =
        isPreview
        ? RecoveryReport.pending(on: device)
        : try Recovery(device, policy: compile(layout), isForced: isForced).run()
      notify(report, device)
      return report
    }
  }

  private var devices: [(root: ByteString, layout: Layout)] {
    let own = (root: home, layout: packaging == .macOS ? Layout.macOS : .xdg)
    guard let directory = packaging.deviceDirectory else { return [own] }
    return [own, (Host.resolved(home.appending(directory)), packaging.layout)]
  }
}
