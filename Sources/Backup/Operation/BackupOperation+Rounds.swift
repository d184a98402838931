internal import ArchiveStore
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

extension BackupOperation {
  /// The maximum number of times that one run scans and reads the source.
  static let rounds = 3

  /// Reads all entries that the plan includes. If an entry is no longer where the scan found it,
  /// the source is scanned again; if the entry was moved or replaced, another round reads the
  /// source in its new state. Entries read in earlier rounds are reused, as after an interruption.
  ///
  /// - Returns: the operation of the last round and its run.
  func readAll(
    into session: WritingSession, state: SourceState, earlier: EarlierSnapshot
  ) throws -> (BackupOperation, BackupRun) {
    var (operation, run) = (
      self, try prepare(for: session, state: state, earlier: earlier, isFirst: true)
    )
    try work(run)
    for round in 1...Self.rounds {
      let vanished = VanishedEntries(run)
      guard !vanished.isEmpty, let scan = try operation.rescan() else { break }
      let moved = vanished.paths(in: scan)
      if moved.isEmpty { break }
      if round == Self.rounds {
        run.note { findings in for path in moved { findings.noteMoved(path) } }
        break
      }
      try run.checkpoint()
      operation = operation.next(scan, vanished)
      try request.classLimit.require(operation.classRuns, of: plan.device.root)
      let databases = run.findings.databases
      run = try operation.prepare(
        for: session, state: run.source.reopened(), earlier: earlier, isFirst: false)
      try operation.work(run)
      operation.keep(databases, in: run)
    }
    return (operation, run)
  }

  /// Scans the plan's containers again; returns nil if the plan was made without a scan.
  private func rescan() throws -> DeviceScan? {
    guard let scan = plan.rescan?(Set(plan.scans.map(\.container.logicalPrefix))) else {
      return nil
    }
    if scan.isInterrupted { throw OperationError.interrupted }
    return scan
  }

  /// Returns the operation of the next round, without the containers that were removed.
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

  /// Keeps the records of databases that earlier rounds captured and this one did not read again.
  private func keep(_ databases: [DatabaseRecord], in run: BackupRun) {
    let read = Set(run.findings.databases.map(\.path))
    for record in databases where !read.contains(record.path) && plan.holds(record.path) {
      run.note { $0.note(record) }
    }
  }
}

extension BackupPlan {
  /// Whether the scan found an entry at a logical path.
  fileprivate func holds(_ path: ByteString) -> Bool {
    scans.contains { scan in
      let prefix = scan.container.logicalPrefix
      guard path.isWithin(prefix) else { return false }
      let rest = path.components.dropFirst(prefix.components.count)
      return scan.index(of: ByteString(joining: rest)) != nil
    }
  }
}
