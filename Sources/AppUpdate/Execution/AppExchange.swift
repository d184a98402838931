internal import DeviceScan
internal import DeviceTransaction
internal import Restore
internal import SandboxModel
internal import SystemIO

// The exchange of an app's containers. All new entries (the bundle, the metadata of containers,
// rewritten links) are staged next to their destinations, synced and verified. The renames that put
// them in place are then recorded in the journal and applied. A container moves to another
// directory by one rename of its own directory, so its data is never in two containers, nothing in
// it is copied or left behind, and its size does not matter. Removed entries are renamed into the
// trash.
//
// Until the journal has the renames, the device is unchanged. From then on the operation is
// finished or rolled back as a whole, after an interruption by the next recovery (docs/journal.md).

/// The staging of an operation on an app, and the steps that put it in place.
final class AppExchange {
  let plan: AppChangePlan
  let journal: OperationJournal
  private var locations: [ByteString: StagedLocation] = [:]
  private(set) var roots: [JournalRecord.Root] = []
  private(set) var steps = JournalSteps()
  /// The entries that move to the trash: the index of the planned container, the entry in its scan,
  /// and the path in the trash.
  private(set) var kept: [(container: Int, entry: Int, path: ByteString)] = []
  /// The restored paths by planned container, each with the path in the trash at which the replaced
  /// entry is kept.
  var displaced: [Int: [(inner: ByteString, path: ByteString)]] = [:]
  /// Remarks on optional entries that could not be staged, such as data outside that an app's
  /// migration names.
  var remarks: [PathRemark] = []
  /// The staged data restored from a snapshot.
  var parts: [StagedPart] = []
  private var trashes: [ByteString: TrashDirectory] = [:]
  /// The ID of the snapshot that was made before; the trash records it.
  var saved: String?

  /// A directory in which steps work, with its staging directory.
  final class StagedLocation {
    let directory: Directory
    let staging: StagingDirectory

    init(_ path: ByteString) throws(SystemError) {
      directory = try Directory.open(resolved: path)
      staging = try StagingDirectory.make(in: directory)
    }
  }

  init(_ plan: AppChangePlan, _ journal: OperationJournal) {
    self.plan = plan
    self.journal = journal
  }

  var hasTrash: Bool { !trashes.isEmpty }

  /// Records the directories for staging in the journal, and creates the staging directories.
  func prepare() throws(SystemError) {
    let changing = plan.containers.filter { $0.action.isExchange }
    let restored = plan.restore?.parts.filter(isStaged).map(\.plan.target.directory) ?? []
    let directories = Set(
      restored
        + changing.flatMap { [($0.top ?? $0.to)?.parent, $0.from?.parent].compactMap { $0 } }
    )
    .filter { !$0.isWithin(plan.device.root.appending(OwnNames.directory)) }.sorted()
    for directory in directories { _ = try Directory.make(resolved: directory, permissions: 0o755) }
    try journal.prepare(0, stagingIn: directories)
    for directory in directories { locations[directory] = try StagedLocation(directory) }
  }

  /// Returns the directory that contains a path, with its staging directory.
  func location(around path: ByteString) throws(SystemError) -> StagedLocation {
    guard let location = locations[path.parent] else { throw SystemError.replaced(path) }
    return location
  }

  // MARK: - Steps

  /// Returns the index of a root, for use in steps.
  func root(_ path: ByteString, inode: UInt64?) -> Int {
    let root = JournalRecord.Root(path: path, inode: inode)
    if let number = roots.firstIndex(of: root) { return number }
    roots.append(root)
    return roots.count - 1
  }

  /// Returns the index of the root of an existing directory.
  func root(_ directory: borrowing Directory) throws(SystemError) -> Int {
    root(directory.path, inode: try directory.status().identity.inode)
  }

  func add(_ step: JournalStep) { steps.append(step) }

  /// Returns the directory at a path, with its staging directory.
  func location(at path: ByteString) throws(SystemError) -> StagedLocation {
    guard let location = locations[path] else { throw SystemError.replaced(path) }
    return location
  }

  /// Returns the index of the root of the trash for a container's logical path, or for the path
  /// above it.
  func trash(for logical: ByteString, from location: StagedLocation) throws(SystemError) -> Int {
    try trashLocation(for: logical, from: location).number
  }

  /// Returns the index of the root of the trash for a logical path, with the trash directory
  /// itself.
  func trashLocation(
    for logical: ByteString, from location: StagedLocation
  ) throws(SystemError) -> (number: Int, location: TrashDirectory) {
    let known = trashes[logical]
    let trash: TrashDirectory
    if let known {
      trash = known
    } else {
      trash = try TrashDirectory(
        of: journal.record, saved: saved, for: logical, in: location.directory,
        probing: location.staging.tree,
        root: plan.device.root)
    }
    trashes[logical] = trash
    return (root(trash.path, inode: nil), trash)
  }

  /// Records an entry that will be in the trash, so that it can be checked for late changes there.
  func record(_ entry: Int, of container: Int, under root: Int, at path: ByteString) {
    kept.append((container, entry, roots[root].path.appending(path)))
  }

  // MARK: - Execution

  /// Syncs the entries that the steps will move, and checks that everything is where the plan found
  /// it.
  func sync() throws {
    for location in locations.values { try location.directory.syncVolume() }
    try requireAsPlanned()
  }

  /// Records the steps in the journal and applies them. If one cannot be applied, all are rolled
  /// back.
  ///
  /// - Returns: the duration of the renames in seconds.
  func run() throws -> Double {
    do throws(SystemError) {
      try journal.move(steps, below: roots)
    } catch { throw notBegun(error) }
    let start = Host.monotonicSeconds()
    do throws(SystemError) {
      let runner = StepRunner(roots, journal.opened)
      for step in steps { _ = try runner.apply(step) }
    } catch { throw rolledBack(error) }
    return Host.monotonicSeconds() - start
  }

  /// Rolls back the applied steps. Returns the error that says so, or that the rollback is left to
  /// a recovery if it failed.
  private func rolledBack(_ error: SystemError) -> OperationError {
    let back = Rollback(journal.record, root: plan.device.root)
    var failed: [PathRemark] = []
    do throws(SystemError) {
      try journal.rollBack()
      let hasPlacedEntries = try back.rollBackSteps(&failed) > 0
      try journal.forgetSteps(hasPlacedEntries: hasPlacedEntries)
      for location in locations.values {
        if !hasPlacedEntries {
          try location.staging.remove()
        } else {
          try location.staging.preserve(
            in: back.trash(in: location.directory, probing: location.staging.tree))
        }
      }
      Trash(of: plan.device).removeEmpty(journal.record.id)
      try journal.end()
    } catch { return unfinished(error) }
    return failure(
      error,
      failed.first.map { "everything was rolled back except '\($0.path)': \($0.remark)" }
        ?? "the device is unchanged")
  }

  /// Ends an operation whose journal could not be written: no step was applied.
  private func notBegun(_ error: SystemError) -> OperationError {
    do throws(SystemError) {
      try journal.end()
    } catch { return unfinished(error) }
    // Without its journal, nothing needs the staged entries.
    abandon()
    Trash(of: plan.device).removeEmpty(journal.record.id)
    return failure(error, "the device is unchanged")
  }

  private func failure(_ error: SystemError, _ end: String) -> OperationError {
    OperationError(
      .failed, code: error.code,
      plan.request.change.verb, subject: plan.request.app,
      reason: error.description,
      hint: [error.hint, end].compactMap { $0 }.joined(separator: "; "))
  }

  /// Syncs the volumes and removes the staging directories.
  func finish() throws(OperationError) {
    do throws(SystemError) {
      for location in locations.values { try location.directory.syncVolume() }
      for location in locations.values { try location.staging.remove() }
    } catch { throw unfinished(error) }
  }

  /// Moves directories to the trash that were created under an old name after the exchange, for
  /// example by a program that remembered the path.
  func removeLeftovers() -> [PathRemark] {
    var found: [PathRemark] = []
    for planned in plan.containers where planned.action == .move || planned.action == .remove {
      guard let from = planned.from, let name = from.lastComponent, planned.to != from,
        let location = try? location(around: from),
        (try? location.directory.statusIfPresent(name)) ?? nil != nil
      else { continue }
      var remark = "it was created again at '\(from)' and moved to the trash"
      do {
        let trash = try Directory.make(
          path: roots[try trash(for: planned.path, from: location)].path, permissions: 0o700)
        // The journal has ended, so no recovery would read a note.
        try location.directory.preserve(name, in: trash, as: name, leaving: true, nil)
      } catch { remark = "it was created again at '\(from)' and stays there: \(error)" }
      found.append(PathRemark(path: planned.path, remark: remark))
    }
    return found
  }

  /// Removes the staging directories if no step was applied or recorded.
  func abandon() { for location in locations.values { try? location.staging.remove() } }

  private func unfinished(_ error: SystemError) -> OperationError {
    OperationError(
      .failed, code: .recoveryRequired,
      "finish the \(plan.request.change.rawValue) of", subject: plan.request.app,
      reason: error.description,
      hint: "run 'sandboxctl recover' to finish it or roll it back; no data is lost")
  }

  /// Fails if a container is not the planned one: an app may have been removed or installed since.
  private func requireAsPlanned() throws {
    for planned in plan.containers where planned.action.isExchange {
      guard let number = planned.scanned, let from = planned.from, let name = from.lastComponent,
        let status = plan.scan.containers[number].entries.first?.status
      else { continue }
      let container = plan.scan.containers[number].container
      let (parent, own) =
        container.member == nil
        ? (from.parent, name) : (from.parent.parent, from.parent.lastComponent ?? "")
      let now = try Directory.open(resolved: parent).statusIfPresent(own)
      guard now?.identity == status.identity else {
        throw OperationError(
          .failed, code: .changedSincePlan,
          plan.request.change.verb, subject: plan.request.app,
          reason: "'\(planned.path)' was "
            + "replaced since the plan was made",
          hint: "another process changed the app: try again")
      }
    }
  }
}
