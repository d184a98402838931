package import ArchiveStore
internal import DeviceScan
package import DeviceTransaction
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// A device that is ready for an operation on one of its apps: interrupted operations on it are
/// recovered, or only listed for a preview.
package struct AppChangePreparation {
  /// The device, with the group members that the policy states.
  package let device: Device
  private let policy: CompiledPolicy
  private let recovery: RecoveryReport
  private let isForced: Bool
  private let savesFirst: Bool

  /// Prepares a device.
  ///
  /// - Parameters:
  ///   - isForced: whether the app may be running.
  ///   - savesFirst: whether a snapshot of the current state is made first.
  ///   - isPreview: whether nothing is to be changed.
  ///   - find: finds the device, again after a recovery.
  ///   - compile: compiles the policy for the device.
  ///   - notify: receives the report of the recovery.
  package init(
    isForced: Bool, savesFirst: Bool, isPreview: Bool, find: () throws -> Device,
    compile: (Device) throws -> CompiledPolicy, notify: (RecoveryReport, Device) -> Void
  ) throws {
    let found = try find()
    policy = try compile(found)
    self.isForced = isForced
    self.savesFirst = savesFirst
    (device, recovery) = try Recovery.beforeChange(
      of: found, policy: policy, isForced: isForced, isPreview: isPreview, again: find,
      notify: notify)
  }

  /// Returns the plan for a request. Changes nothing.
  ///
  /// - Parameters:
  ///   - storage: the repository of the snapshot that is made first, which is not scanned; nil if
  ///     none is made.
  ///   - destination: the destination of that snapshot; for a preview as far as it is known.
  ///   - isStopping: whether the scan should end early. Called for each directory, by several
  ///     threads.
  /// - Throws: `OperationError` if an interrupted operation on the app could not be recovered,
  ///   since no other operation can be planned before; `interrupted`.
  package func plan(
    _ request: AppChangeRequest, savingTo storage: (any Storage)?, at destination: Destination,
    isStopping: @escaping @Sendable () -> Bool
  ) throws -> AppChangePlan {
    AppChangePlan.make(
      try scan(for: request, savingTo: storage, at: destination, isStopping: isStopping),
      adapted(request))
  }

  /// Returns the plan for the return to the state before the last update of the app. Changes
  /// nothing.
  ///
  /// - Parameters:
  ///   - repository: the repository with the snapshot that the update made, and a reader of it; nil
  ///     if there is none.
  ///   - heads: the host's cache of snapshot heads.
  ///   - storage, destination, isStopping: as in `plan(_:savingTo:at:isStopping:)`.
  /// - Throws: the errors of `plan(_:savingTo:at:isStopping:)`; `StoreError`.
  package func rollbackPlan(
    _ request: AppChangeRequest, savingTo storage: (any Storage)?, at destination: Destination,
    from repository: (repository: Repository, reader: RepositoryReader)?,
    heads: SnapshotHeadCache?, isStopping: @escaping @Sendable () -> Bool
  ) throws -> AppChangePlan {
    let stored = try repository.flatMap { source in
      let updates = try source.repository.snapshots(cache: heads) { $0.reason == .preUpdate }
      let state = AppChangePlan.stateBefore(request.app, on: device, among: updates.snapshots)
      // An older one in its place would be a state other than the user expects.
      if let state { try source.repository.requireTrusted(state, "roll back to") }
      return state
    }
    return try AppChangePlan.rollback(
      scan(for: request, savingTo: storage, at: destination, isStopping: isStopping),
      adapted(request), to: stored, from: repository?.reader)
  }

  /// Refuses a plan that the blocked recovery of another operation prevents. Returns the report of
  /// the recovery, whose blocked operations remain pending.
  package func requireUnblocked(_ plan: AppChangePlan) throws(OperationError) -> RecoveryReport {
    try recovery.requireNoneBlocks(plan.subjects)
    return recovery
  }

  /// Scans the containers that the requested operation affects.
  private func scan(
    for request: AppChangeRequest, savingTo storage: (any Storage)?, at destination: Destination,
    isStopping: @escaping @Sendable () -> Bool
  ) throws -> DeviceScan {
    let app = request.app
    try recovery.requireNoneBlocks(app)
    let scan = DeviceScan.run(
      device, policy: policy,
      options: ScanOptions(
        destination: destination, excluded: try storage?.protectedDirectories() ?? [],
        isStopping: isStopping)
    ) { AppChangePlan.isConcerned($0, by: app, on: device) }
    if scan.isInterrupted {
      throw OperationError(
        .interrupted,
        "the \(request.change.rawValue) of '\(app)' was interrupted: nothing was changed",
        hint: "run it again")
    }
    return scan
  }

  private func adapted(_ request: AppChangeRequest) -> AppChangeRequest {
    var request = request
    request.isForced = isForced
    request.savesFirst = savesFirst
    return request
  }
}
