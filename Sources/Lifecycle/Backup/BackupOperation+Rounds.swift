internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// The greatest number of times that the source is scanned and read in one run.
  static let rounds = 3

  /// Reads all that the plan keeps. When something was no longer where the scan saw it, the source is
  /// scanned again, and if it was moved or replaced, a further round reads the source as it is then:
  /// what the rounds before have read is known, as after an interruption.
  ///
  /// - Returns: the operation of the last round, and its run.
  func readAll(
    _ session: WritingSession, _ state: SourceState, _ earlier: EarlierSnapshot
  ) throws -> (BackupOperation, BackupRun) {
    var (operation, run) = (self, try prepare(session, state, earlier, isFirst: true))
    try work(run)
    for round in 1...Self.rounds {
      let vanished = VanishedEntries(run)
      guard !vanished.isEmpty, let scan = try operation.rescan() else { break }
      let moved = vanished.paths(in: scan)
      if moved.isEmpty { break }
      if round == Self.rounds {
        run.note { findings in for path in moved { findings.noteMoving(path) } }
        break
      }
      try run.checkpoint()
      operation = operation.next(scan, vanished)
      try request.classBound.require(operation.classRuns, of: plan.device.root)
      let databases = run.findings.databases
      run = try operation.prepare(session, run.source.reopened(), earlier, isFirst: false)
      try operation.work(run)
      operation.keep(databases, in: run)
    }
    return (operation, run)
  }

  /// Scans the plan's containers again; nil for a plan that was made without a scan.
  private func rescan() throws -> DeviceScan? {
    guard let scan = plan.rescan?(Set(plan.scans.map(\.container.logicalPrefix))) else {
      return nil
    }
    if scan.isInterrupted { throw LifecycleError.interrupted }
    return scan
  }

  /// The operation of the next round: without the containers that were removed.
  private func next(_ scan: DeviceScan, _ vanished: VanishedEntries) -> BackupOperation {
    var scan = scan
    let removed = scan.containers.filter {
      $0.entries.isEmpty && vanished.hasRoot(of: $0.container)
    }.map(\.container)
    scan.containers.removeAll { removed.contains($0.container) }
    var next = BackupOperation(BackupPlan.make(scan), to: repository, request)
    next.removed = self.removed + removed
    return next
  }

  /// Keeps how earlier rounds captured the databases that this one did not have to read again.
  private func keep(_ databases: [DatabaseRecord], in run: BackupRun) {
    let read = Set(run.findings.databases.map(\.path))
    for record in databases where !read.contains(record.path) && plan.holds(record.path) {
      run.note { $0.note(record) }
    }
  }
}

extension BackupPlan {
  /// Whether the scan found something at a logical path.
  fileprivate func holds(_ path: ByteString) -> Bool {
    scans.contains { scan in
      let prefix = scan.container.logicalPrefix
      guard path.isWithin(prefix) else { return false }
      let rest = path.components.dropFirst(prefix.components.count)
      return scan.index(of: rest.reduce("") { $0.appending($1) }) != nil
    }
  }
}
