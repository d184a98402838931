package import ArchiveStore
package import DeviceScan
package import DeviceTransaction
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The migration of apps between two devices whose containers have the same logical names.
///
/// The source's containers are stored in a snapshot, which is restored into the target like any
/// other (module Restore): under its journal, after a snapshot of the target, and with the data of
/// apps that are not installed in the safe harbor. Existing files stay unchanged.
package struct DeviceMigration {
  private let apps: [App]
  private let source: Device
  private let target: DeviceMigrationTarget
  private let pairs: [ContainerPairing]
  private let policy: CompiledPolicy

  /// Pairs the containers of apps with those of the target.
  ///
  /// - Parameters:
  ///   - apps: the apps; all of the source if empty.
  ///   - compile: compiles the policy for the source.
  /// - Throws: the errors of `DeviceMigrationTarget.pairs`, `ModelError` if the target cannot be
  ///   read, and those of `compile`.
  package init(
    of apps: [App], from source: Device, to target: DeviceMigrationTarget,
    compile: (Device) throws -> CompiledPolicy
  ) throws {
    self.apps = apps
    self.source = source
    self.target = target
    pairs = try target.pairs(of: apps, from: source)
    policy = try compile(source)
  }

  /// Compares the containers with their counterparts.
  ///
  /// - Parameter isForced: whether apps may run, and operations on them may be interrupted.
  ///   Otherwise such a source is refused: its files could change while they are stored, or be
  ///   incomplete.
  package func preview(
    _ options: ScanOptions, isForced: Bool
  ) throws(OperationError) -> [ContainerPreview] {
    let scan = scan(source, pairs, with: options)
    if !isForced, let sign = RunningApps.signs(in: scan).first {
      throw OperationError(
        .failed, code: .appRunning, "migrate from", subject: source.root, reason: sign.text,
        hint: "close the app and try again, or add '--force'")
    }
    if !isForced {
      let subjects = Set(pairs.map(\.source.logicalPrefix.subject)).sorted()
      try SourceOperations.requireNone(on: subjects, in: source.root, source.layout)
    }
    return ContainerPreview.make(pairs, in: scan)
  }

  /// Stores the containers of the source that have a counterpart, with the target's layout: the
  /// logical names are the same.
  ///
  /// - Throws: `OperationError`, also if there is nothing to store. The target is unchanged.
  package func store(
    _ options: ScanOptions, by maker: SafetySnapshotMaker
  ) throws -> StoredSnapshot {
    let wanted = pairs.filter { $0.counterpart != .noPlace }
    let apps = Set(wanted.compactMap { $0.source.owner?.bytes.utf8 })
    let stored: StoredSnapshot?
    do {
      stored = try maker.save(
        scan(source.labelled(target.layout), wanted, with: options), reason: .manual,
        scope: .apps(apps.sorted()), hint: "the target is unchanged", room: { _ in 0 })
    } catch let error as OperationError where error.code == .safetySnapshotFailed {
      throw OperationError(
        error.kind, code: error.code, "store the data of", subject: source.root,
        reason: error.parts.reason ?? error.description, hint: "the target is unchanged")
    }
    guard let stored else {
      throw OperationError(
        .failed, code: .nothingReadable, "migrate from", subject: source.root,
        reason: "it has nothing to store")
    }
    return stored
  }

  /// Restores with `body`. If the target is a new bundle, it is created first, and removed again if
  /// `body` throws and has put nothing into it.
  package func withTarget<Result>(_ body: () throws -> Result) throws -> Result {
    try target.make(of: apps, from: source, body)
  }

  private func scan(
    _ device: Device, _ pairs: [ContainerPairing], with options: ScanOptions
  ) -> DeviceScan {
    let containers = Set(pairs.map(\.source.logicalPrefix))
    return DeviceScan.run(device, policy: policy, options: options) {
      containers.contains($0.logicalPrefix)
    }
  }
}

extension Device {
  /// Returns the device with another layout, for a snapshot to restore into a device of that
  /// layout.
  fileprivate func labelled(_ layout: Layout) -> Device {
    if layout == self.layout { return self }
    return Device(
      root: root, layout: layout,
      facts: Facts(platform: platform, version: osVersion, name: name), identity: identity,
      apps: apps, containers: containers, systemContainers: systemContainers, findings: findings)
  }
}
