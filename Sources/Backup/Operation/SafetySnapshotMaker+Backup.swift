package import ArchiveStore
package import DeviceTransaction

extension SafetySnapshotMaker {
  /// Creates a maker of snapshots by a backup.
  ///
  /// - Parameter request: the options of the backup.
  package init(_ request: BackupRequest, in repository: Repository) {
    self.init(in: repository) { wanted in
      var request = request
      request.reason = wanted.reason
      request.scope = wanted.scope
      request.isPart = true
      request.skipsUnchanged = false
      request.neededAfterwards = wanted.neededAfterwards
      let plan = BackupPlan.make(wanted.scan)
      let report = try BackupOperation(plan, to: repository, request).run()
      return (report.snapshot, report.unreadable.first)
    }
  }
}
