package import AppPackages
package import ArchiveStore
internal import Codecs
internal import DeviceScan
package import DeviceTransaction
internal import Restore
internal import SandboxModel
package import SystemIO

/// The execution of an `AppChangePlan`: a snapshot of the current state, then the staging of all
/// new entries, then the renames under the journal (`AppExchange`).
///
/// Until the first rename any interruption leaves the device unchanged; after it `Recovery`
/// finishes the operation. Nothing is unlinked: removed entries move to the trash. Not guaranteed:
/// that an app that starts at the same moment finds its files at their old paths.
package struct AppChangeOperation {
  private let plan: AppChangePlan
  private let saving: SafetySnapshotMaker?
  private let reader: RepositoryReader?
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares an operation.
  ///
  /// - Parameters:
  ///   - saving: makes the snapshot; without it, an operation that makes a snapshot is refused.
  ///   - reader: the reader for a plan that restores data.
  package init(
    _ plan: AppChangePlan, saving: SafetySnapshotMaker?, from reader: RepositoryReader? = nil,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.plan = plan
    self.saving = saving
    self.reader = reader
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Runs an operation that needs no package.
  ///
  /// - Throws: the errors of `run(_:)`.
  package func run() throws -> AppChangeReport {
    var none = NoPackage()
    return try run(&none)
  }

  /// Runs the operation and reads the package once.
  ///
  /// - Throws: `OperationError`: `failed` if the plan was refused, the app is running, the snapshot
  ///   could not be made, or a system call failed; `busy`; `interrupted`. `ModelError` if the
  ///   package is damaged.
  package func run<Source: PackageEntrySource & ~Copyable>(
    _ package: inout Source
  ) throws -> AppChangeReport {
    let start = Host.monotonicSeconds()
    try requireAllowed()
    let room = VolumeNeeds(plan, from: reader)
    try room.require(
      "\(plan.request.change.verb) '\(plan.request.app)' in", hint: AppChangePlan.roomHint)
    let (root, subjects) = (plan.device.root, plan.subjects)
    let journal = try OperationJournal(
      JournalRecord(
        operation: plan.request.change.rawValue, time: plan.request.time, subjects: subjects,
        containers: [plan.path], isWhole: true), root: root)
    var report = AppChangeReport()
    report.failed = plan.unreadTrash
    let exchange = AppExchange(plan, journal)
    do {
      report.saved = try save(leaving: room)
      exchange.saved = report.saved?.id.hex
      try exchange.prepare()
      report.written = try exchange.stage(&package, isStopping: isStopping)
      if let reader { try exchange.stage(from: reader, counters, isStopping: isStopping) }
      try exchange.sync()
    } catch {
      // Nothing was moved. Staged entries are removed here, or by 'recover'.
      exchange.abandon()
      Trash(of: plan.device).removeEmpty(journal.record.id)
      SafeHarbor.removeEmpty(of: plan.request.app.bytes, root: root)
      try? journal.end()
      throw Self.wrapped(error)
    }
    do {
      report.exchangeSeconds = try exchange.run()
      if let reader { report.failed += exchange.finishParts(reader) }
      try exchange.finish()
      try journal.end()
    } catch { throw Self.wrapped(error) }
    finish(exchange, &report)
    withExtendedLifetime(journal) {
      Trash(of: plan.device).removeOld(of: subjects, now: plan.request.time)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  private static func wrapped(_ error: any Error) -> any Error {
    if let error = error as? SystemError { return OperationError(error) }
    return error
  }

  // MARK: - Before

  private func requireAllowed() throws(OperationError) {
    let (change, app) = (plan.request.change.verb, plan.request.app)
    if let refusal = plan.refusals.first {
      throw OperationError(
        .failed, code: refusal.code.errorCode, change, subject: app,
        reason: refusal.reason,
        hint: refusal.hint)
    }
    if plan.isSimulated {
      throw OperationError(
        .failed, code: .managedByPlatform,
        change, subject: app,
        reason: "apps of \(plan.device.layout.rawValue) are managed by "
          + "its own program",
        hint: plan.commands.first.map { "run '\($0)'; '--dry-run' shows its effect" })
    }
    try plan.requireStopped()
  }

  /// Makes the snapshot.
  private func save(leaving room: VolumeNeeds) throws -> StoredSnapshot? {
    guard plan.makesSnapshot else { return nil }
    let change = plan.request.change
    guard let saving else {
      throw OperationError(
        .failed, code: .noRepositoryForSnapshot,
        change.verb, subject: plan.request.app,
        reason: "there is no repository for the snapshot of "
          + "the current state",
        hint: "name one with '--repo', or skip the snapshot with '--no-snapshot'")
    }
    let apps = plan.request.app.bytes.utf8.map { [$0] } ?? []
    return try saving.save(
      plan.scan, reason: change.reason, scope: .apps(apps),
      hint: "'--no-snapshot' continues without a snapshot", room: room.bytes(on:))
  }

  // MARK: - After

  /// Checks the entries that were moved away, and the paths that are now free, for late changes.
  private func finish(_ exchange: AppExchange, _ report: inout AppChangeReport) {
    if exchange.hasTrash { report.trash = exchange.journal.record.id }
    report.failed += exchange.remarks
    for kept in exchange.kept {
      guard let number = plan.containers[kept.container].scanned else { continue }
      report.lateChanges += LateChanges.find(
        plan.scan.containers[number], below: kept.entry, at: kept.path)
    }
    for (container, replaced) in exchange.displaced.sorted(by: { $0.key < $1.key }) {
      guard let number = plan.containers[container].scanned else { continue }
      report.lateChanges += LateChanges.find(plan.scan.containers[number], replaced: replaced)
    }
    report.lateChanges += exchange.removeLeftovers()
    SafeHarbor.removeEmpty(of: plan.request.app.bytes, root: plan.device.root)
  }
}

/// The result of an operation on an app.
package struct AppChangeReport: Sendable {
  /// The snapshot of the previous state.
  package internal(set) var saved: StoredSnapshot?
  /// The ID of the operation whose trash directory has the replaced entries; nil if nothing was
  /// replaced.
  package internal(set) var trash: String?
  /// The logical paths of removed entries that are not in the plan, because a process created them
  /// between the plan and the exchange. They are in the trash.
  package internal(set) var lateChanges: [PathRemark] = []
  /// The logical paths of changes that failed.
  package internal(set) var failed: [PathRemark] = []
  /// The entries and bytes written from the package.
  package internal(set) var written = AppPackage.Size()
  /// The duration of the exchange in seconds, from the first rename to the last.
  package internal(set) var exchangeSeconds = 0.0
  /// The total duration in seconds.
  package internal(set) var seconds = 0.0

  /// Whether everything was done as planned.
  package var isComplete: Bool { lateChanges.isEmpty && failed.isEmpty }
}

extension AppChange {
  /// The verb after "cannot" in error messages.
  var verb: String { self == .rollback ? "roll back" : rawValue }

  /// The reason recorded in the snapshot made before the operation.
  var reason: Reason {
    switch self {
    case .install, .update, .reinstall: .preUpdate
    case .rollback: .preRollback
    case .offload, .uninstall: .uninstall
    }
  }
}

/// Changes to removed entries that were made after the plan, by the app or one of its helpers. The
/// entries are compared once they are in the trash, where no process writes to them.
struct LateChanges: WalkVisitor {
  private let known: [ByteString: FileStatus]
  private var found: [PathRemark] = []
  private let logical: ByteString

  /// Returns the late changes to a removed entry of a scan and everything below it.
  ///
  /// - Parameter path: its current path.
  static func find(
    _ scan: ContainerScan, below entry: Int, at path: ByteString
  ) -> [PathRemark] {
    let (logical, before) = (scan.logicalPath(entry), scan.entries[entry].status)
    do throws(SystemError) {
      guard before.kind == .directory else {
        let isLate = try status(at: path).map { isWritten($0, since: before) } ?? false
        return isLate ? [PathRemark(path: logical, remark: modified)] : []
      }
      let directory = try Directory.open(resolved: path)
      var visitor = LateChanges(scan, below: entry, logical: logical)
      var walk = Walk(directory)
      walk.run(&visitor, state: ByteString(""))
      return visitor.found.sorted { $0.path < $1.path }
    } catch { return error.isMissing ? [] : [unknown(logical, error)] }
  }

  /// Returns the late changes to entries of a container that were replaced by restored ones.
  ///
  /// - Parameter replaced: the paths in the container, each with the path at which the replaced
  ///   entry is kept if there was one.
  static func find(
    _ scan: ContainerScan, replaced: [(inner: ByteString, path: ByteString)]
  ) -> [PathRemark] {
    let lookup = EntryLookup(scan)
    return replaced.flatMap { inner, path in
      find(scan, entry: lookup.index(of: inner), inner: inner, at: path)
    }
  }

  private static func find(
    _ scan: ContainerScan, entry: Int?, inner: ByteString, at path: ByteString
  ) -> [PathRemark] {
    let logical = scan.container.logicalPrefix.appending(inner)
    do throws(SystemError) {
      guard let now = try status(at: path) else { return [] }
      guard let entry else {
        return [PathRemark(path: logical, remark: "it was created after the plan was made")]
      }
      if now.kind == .directory { return find(scan, below: entry, at: path) }
      return isWritten(now, since: scan.entries[entry].status)
        ? [PathRemark(path: logical, remark: modified)] : []
    } catch { return error.isMissing ? [] : [unknown(logical, error)] }
  }

  private static func status(at path: ByteString) throws(SystemError) -> FileStatus? {
    guard let name = path.lastComponent else { return nil }
    return try Directory.open(resolved: path.parent).statusIfPresent(name)
  }

  /// Returns the remark on what an error keeps from being compared: it may have been changed.
  private static func unknown(_ path: ByteString, _ error: SystemError) -> PathRemark {
    PathRemark(path: path, remark: "it cannot be compared with the plan: \(error.reason)")
  }

  private static let modified = "it was modified after the plan was made"

  private static func isWritten(_ now: FileStatus, since before: FileStatus) -> Bool {
    now.kind == .file && (before.size != now.size || before.modified != now.modified)
  }

  private init(_ scan: ContainerScan, below entry: Int, logical: ByteString) {
    self.logical = logical
    var known: [ByteString: FileStatus] = [:]
    var open: [(entry: Int, path: ByteString)] = [(entry, "")]
    while let next = open.popLast() {
      known[next.path] = scan.entries[next.entry].status
      for child in scan.entries[next.entry].children {
        open.append((child, next.path.appending(scan.name(child))))
      }
    }
    self.known = known
  }

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: ByteString,
    descent: inout WalkDescent<ByteString>
  ) {
    for (index, entry) in batch.entries.enumerated() {
      let path = state.appending(batch.name(entry))
      if entry.status.kind == .directory { descent.enter(index, with: path) }
      guard let before = known[path] else {
        found.append(
          PathRemark(
            path: logical.appending(path), remark: "it was created after the plan was made"))
        continue
      }
      if Self.isWritten(entry.status, since: before) {
        found.append(PathRemark(path: logical.appending(path), remark: Self.modified))
      }
    }
  }

  mutating func failed(_ problem: WalkProblem, state: ByteString) {
    found.append(Self.unknown(logical.appending(problem.path), problem.error))
  }
}
