public import ArchiveStore
internal import Codecs
public import SandboxModel
internal import SystemIO

/// Carries out an `AppChangePlan`: a snapshot of what is there, then everything staged, then the renames
/// under the journal (`AppExchange`).
///
/// Whatever ends it before the first rename leaves the device as it was; after that `Recovery` finishes
/// it. Nothing is unlinked: what goes lies in the trash. Not guaranteed: that an app which starts in the
/// same moment finds its files where it looked for them.
public struct AppChangeOperation {
  private let plan: AppChangePlan
  private let repository: Repository?
  private let saving: BackupRequest
  private let reader: RepositoryReader?
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares an operation.
  ///
  /// - Parameters:
  ///   - repository: where the snapshot goes; without one an operation that makes one is refused.
  ///   - saving: how the snapshot is made.
  ///   - reader: what a plan that brings something back reads from.
  public init(
    _ plan: AppChangePlan, saving: BackupRequest, to repository: Repository?,
    from reader: RepositoryReader? = nil, counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.plan = plan
    self.saving = saving
    self.repository = repository
    self.reader = reader
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Does what needs no package.
  ///
  /// - Throws: what `run(_:)` throws.
  public func run() throws -> AppChangeReport {
    var none = NoPackage()
    return try run(&none)
  }

  /// Does it, reading the package once.
  ///
  /// - Throws: `LifecycleError`: `failed` where the plan was refused, the app runs, what is there could
  ///   not be saved, or a call failed; `busy`, `interrupted`; `ModelError` for a damaged package.
  public func run<Source: EntrySource & ~Copyable>(
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
    let exchange = AppExchange(plan, journal)
    do {
      report.saved = try save(leaving: room)
      exchange.saved = report.saved?.id.hex
      try exchange.prepare()
      report.written = try exchange.stage(&package, isStopping: isStopping)
      if let reader { try exchange.stage(from: reader, counters, isStopping: isStopping) }
      try exchange.sync()
    } catch {
      // Nothing was moved: what was staged goes, or 'recover' removes it.
      exchange.abandon()
      Trash(of: plan.device).removeEmpty(journal.record.id)
      SafeHarbor.removeEmpty(of: plan.request.app.bytes, root: root)
      try? journal.end()
      throw Self.told(error)
    }
    do {
      report.exchangeSeconds = try exchange.run()
      if let reader { report.failed += exchange.finishParts(reader) }
      try exchange.finish()
      try journal.end()
    } catch { throw Self.told(error) }
    finish(exchange, &report)
    Trash(of: plan.device).removeOld(of: subjects, now: plan.request.time)
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  private static func told(_ error: any Error) -> any Error {
    if let error = error as? SystemError { return LifecycleError(error) }
    return error
  }

  // MARK: - Before

  private func requireAllowed() throws(LifecycleError) {
    let (change, app) = (plan.request.change.verb, plan.request.app)
    if let refusal = plan.refusals.first {
      throw LifecycleError(
        .failed, "cannot \(change) '\(app)': \(refusal.reason)", hint: refusal.hint)
    }
    if plan.isSimulated {
      throw LifecycleError(
        .failed,
        "cannot \(change) '\(app)': apps of \(plan.device.layout.rawValue) are installed by "
          + "its own program",
        hint: plan.commands.first.map { "'\($0)' does it; '--dry-run' tells what it does" })
    }
    if plan.request.isForced { return }
    let signs = plan.runningProcesses()
    if signs.isEmpty { return }
    let shown = signs.prefix(5).map(\.text).joined(separator: "; ")
    let more = signs.count > 5 ? "; and \(signs.count - 5) more" : ""
    throw LifecycleError(
      .failed, "cannot \(change) '\(app)': \(shown)\(more)",
      hint: "close the app and try again, or add '--force'")
  }

  /// Makes the snapshot; where it shares a volume with the device what comes has to find room beside it.
  private func save(leaving room: VolumeNeeds) throws -> StoredSnapshot? {
    guard plan.makesSnapshot else { return nil }
    let change = plan.request.change
    guard let repository else {
      throw LifecycleError(
        .failed,
        "cannot \(change.verb) '\(plan.request.app)': there is no repository for the snapshot of "
          + "what is there",
        hint: "name one with '--repo', or go without one with '--no-snapshot'")
    }
    var saving = saving
    if let volume = try repository.storage.space()?.device {
      saving.neededAfterwards = room.bytes(on: volume)
    }
    let apps = plan.request.app.bytes.utf8.map { [$0] } ?? []
    return try SafetySnapshot(
      in: repository, saving, hint: "'--no-snapshot' goes on without saving it"
    ).save(plan.scan, reason: change.reason, scope: .apps(apps))
  }

  // MARK: - After

  /// Looks again at what went, and at the places that are empty now.
  private func finish(_ exchange: AppExchange, _ report: inout AppChangeReport) {
    if exchange.hasTrash { report.trash = exchange.journal.record.id }
    report.failed += exchange.remarks
    for kept in exchange.kept {
      guard let number = plan.containers[kept.container].scanned else { continue }
      report.unplanned += LateChanges.find(
        plan.scan.containers[number], below: kept.entry, at: kept.path)
    }
    for (container, replaced) in exchange.displaced.sorted(by: { $0.key < $1.key }) {
      guard let number = plan.containers[container].scanned else { continue }
      report.unplanned += LateChanges.find(plan.scan.containers[number], replaced: replaced)
    }
    report.unplanned += exchange.removeLeftovers()
    SafeHarbor.removeEmpty(of: plan.request.app.bytes, root: plan.device.root)
  }
}

extension AppChange {
  /// What is done, behind "cannot".
  var verb: String { self == .rollback ? "roll back" : rawValue }

  /// Why the snapshot before it is made.
  var reason: Reason {
    switch self {
    case .install, .update, .reinstall: .preUpdate
    case .rollback: .preRollback
    case .offload, .uninstall: .uninstall
    }
  }
}
