import PolicyEngine
import Restore
import SandboxModel
import SystemIO

@testable import DeviceScan

// Scans and restores for tests that do not depend on the destination of a backup.

extension ScanOptions {
  init(
    excluded: Set<FileIdentity> = [], isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.init(destination: .unrestricted, excluded: excluded, isStopping: isStopping)
  }
}

extension DeviceScan {
  static func run(
    _ device: Device, policy: CompiledPolicy, knowing marks: ExclusionMarkCache? = nil,
    where isWanted: (Container) -> Bool = { _ in true }
  ) -> DeviceScan {
    run(device, policy: policy, options: ScanOptions(), knowing: marks, where: isWanted)
  }
}

extension DeviceRestoreRequest {
  init(
    _ device: Device, isInPlace: Bool, policy: CompiledPolicy, time: Timestamp = Host.now()
  ) {
    self.init(
      device, isInPlace: isInPlace, policy: policy, savingTo: Destination(isUnencrypted: true),
      time: time)
  }
}
