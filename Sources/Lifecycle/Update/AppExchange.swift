internal import SandboxModel
internal import SystemIO

// How an app's containers change together. All that is new (the bundle, the containers' metadata, links
// that lead elsewhere now) is staged beside the places that it gets, synced, and verified. Then the
// journal says by which renames everything gets its place, and they are taken: a container gets another
// directory by one rename of its own directory, so its data is never in two containers, nothing in it is copied
// or left behind, and how much it is does not matter. What goes is renamed into the trash.
//
// Until the journal says so the device is as it was; from then on every way ends with the device as
// planned: the renames that are left are taken by whoever comes next (docs/journal.md).

/// What an operation on an app stages, and the steps by which it gets its place.
final class AppExchange {
  let plan: AppChangePlan
  let journal: OperationJournal
  private var places: [ByteString: StagedLocation] = [:]
  private(set) var roots: [JournalRecord.Root] = []
  private(set) var steps = JournalSteps()
  /// What goes to the trash: the planned container, the entry of its scan, and where it lies then.
  private(set) var kept: [(container: Int, entry: Int, path: ByteString)] = []
  /// By the planned container the paths at which something comes back, and where what gives way there lies
  /// then.
  var displaced: [Int: [(inner: ByteString, path: ByteString)]] = [:]
  /// What could not be staged and is not needed, as data outside that an app's migration names.
  var remarks: [PathRemark] = []
  /// What comes back of a snapshot, staged.
  var parts: [StagedPart] = []
  private var trashes: [ByteString: TrashDirectory] = [:]
  /// The snapshot that was made before, by its name: the trash says of which state it has the rest.
  var saved: String?

  /// A directory in which steps work, with what is staged for it.
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

  /// Notes where something will be staged, and makes the directories for it.
  func prepare() throws(SystemError) {
    let changing = plan.containers.filter { $0.fate.isExchange }
    let restored = plan.restore?.parts.filter(isStaged).map(\.plan.place.directory) ?? []
    let directories = Set(
      restored
        + changing.flatMap { [($0.top ?? $0.to)?.parent, $0.from?.parent].compactMap { $0 } }
    )
    .filter { !$0.isWithin(plan.device.root.appending(OwnNames.directory)) }.sorted()
    for directory in directories { _ = try Directory.make(resolved: directory, permissions: 0o755) }
    try journal.prepare(0, stagingIn: directories)
    for directory in directories { places[directory] = try StagedLocation(directory) }
  }

  /// The directory that a path lies in, with what is staged for it.
  func place(around path: ByteString) throws(SystemError) -> StagedLocation {
    guard let place = places[path.parent] else { throw SystemError.replaced(path) }
    return place
  }

  // MARK: - Steps

  /// The number of a root, which a step names.
  func root(_ path: ByteString, inode: UInt64?) -> Int {
    let root = JournalRecord.Root(path: path, inode: inode)
    if let number = roots.firstIndex(of: root) { return number }
    roots.append(root)
    return roots.count - 1
  }

  /// The root of a directory that is there.
  func root(_ directory: borrowing Directory) throws(SystemError) -> Int {
    root(directory.path, inode: try directory.status().identity.inode)
  }

  func add(_ step: JournalStep) { steps.append(step) }

  /// A directory that something is staged for.
  func place(at path: ByteString) throws(SystemError) -> StagedLocation {
    guard let place = places[path] else { throw SystemError.replaced(path) }
    return place
  }

  /// The root of the trash for a container, by its logical path, or that of what is above it.
  func trash(for logical: ByteString, from place: StagedLocation) throws(SystemError) -> Int {
    try trashPlace(for: logical, from: place).number
  }

  /// The same, with the place itself.
  func trashPlace(
    for logical: ByteString, from place: StagedLocation
  ) throws(SystemError) -> (number: Int, place: TrashDirectory) {
    let known = trashes[logical]
    let trash: TrashDirectory
    if let known {
      trash = known
    } else {
      trash = try TrashDirectory(
        of: journal.record, saved: saved, for: logical, in: place.directory,
        probing: place.staging.tree,
        root: plan.device.root)
    }
    trashes[logical] = trash
    return (root(trash.path, inode: nil), trash)
  }

  /// Notes what will lie in the trash, so that it can be looked at again there.
  func note(_ entry: Int, of container: Int, under root: Int, at path: ByteString) {
    kept.append((container, entry, roots[root].path.appending(path)))
  }

  // MARK: - Carrying out

  /// Makes durable what the steps will move, and sees that everything is where the plan found it.
  func sync() throws {
    for place in places.values { try place.directory.syncVolume() }
    try requireAsPlanned()
  }

  /// Takes all steps, which the journal has by then. Where one of them cannot be taken all are taken back.
  ///
  /// - Returns: how long the renames took, in seconds.
  func run() throws -> Double {
    do throws(SystemError) {
      try journal.move(steps, below: roots)
    } catch { throw notBegun(error) }
    let start = Host.monotonicSeconds()
    do throws(SystemError) {
      let runner = StepRunner(roots, journal.opened)
      for step in steps { _ = try runner.take(step) }
    } catch { throw rolledBack(error) }
    return Host.monotonicSeconds() - start
  }

  /// Takes back what was done of the steps, and tells so; or that it is left to the recovery, where that
  /// cannot be done now.
  private func rolledBack(_ error: SystemError) -> LifecycleError {
    let back = Rollback(journal.record, root: plan.device.root)
    var failed: [PathRemark] = []
    do throws(SystemError) {
      try journal.rollBack()
      let hasCome = try back.takeSteps(&failed) > 0
      try journal.forgetSteps(hasCome: hasCome)
      for place in places.values {
        if !hasCome {
          try place.staging.remove()
        } else {
          try place.staging.keep(in: back.trash(in: place.directory, probing: place.staging.tree))
        }
      }
      Trash(of: plan.device).removeEmpty(journal.record.id)
      try journal.end()
    } catch { return unfinished(error) }
    return failure(
      error,
      failed.first.map { "all was taken back but '\($0.path)': \($0.remark)" }
        ?? "everything is as it was before")
  }

  /// Ends what has a journal that could not be written: no step was taken.
  private func notBegun(_ error: SystemError) -> LifecycleError {
    do throws(SystemError) {
      try journal.end()
    } catch { return unfinished(error) }
    // Without its journal nothing needs what was staged.
    abandon()
    Trash(of: plan.device).removeEmpty(journal.record.id)
    return failure(error, "everything is as it was before")
  }

  private func failure(_ error: SystemError, _ end: String) -> LifecycleError {
    LifecycleError(
      .failed,
      "cannot \(plan.request.change.verb) '\(plan.request.app)': \(error.description)",
      hint: [error.hint, end].compactMap { $0 }.joined(separator: "; "))
  }

  /// Makes it durable and removes what is left of the staging.
  func finish() throws(LifecycleError) {
    do throws(SystemError) {
      for place in places.values { try place.directory.syncVolume() }
      for place in places.values { try place.staging.remove() }
    } catch { throw unfinished(error) }
  }

  /// Moves to the trash what came under the old directory's name after the exchange, as from a program that
  /// makes the directories of a path that it remembers.
  func removeLeftovers() -> [PathRemark] {
    var found: [PathRemark] = []
    for planned in plan.containers where planned.fate == .move || planned.fate == .remove {
      guard let from = planned.from, let name = from.lastComponent, planned.to != from,
        let place = try? place(around: from),
        (try? place.directory.statusIfPresent(name)) ?? nil != nil
      else { continue }
      var remark = "it was made anew at '\(from)', and is in the trash"
      do {
        let trash = try Directory.make(
          path: roots[try trash(for: planned.path, from: place)].path, permissions: 0o700)
        // The journal has ended: nobody would look for a note.
        try place.directory.keep(name, in: trash, as: name, leaving: true, nil)
      } catch { remark = "it was made anew at '\(from)', and stays there: \(error)" }
      found.append(PathRemark(path: planned.path, remark: remark))
    }
    return found
  }

  /// Removes what is staged, when no step was taken or noted.
  func abandon() { for place in places.values { try? place.staging.remove() } }

  private func unfinished(_ error: SystemError) -> LifecycleError {
    LifecycleError(
      .failed,
      "cannot finish the \(plan.request.change.rawValue) of '\(plan.request.app)': "
        + error.description,
      hint: "'sandboxctl recover' finishes it or takes it back; nothing is lost")
  }

  /// Refuses when a container is not the one that the plan is of: an app may have been removed or
  /// installed since.
  private func requireAsPlanned() throws {
    for planned in plan.containers where planned.fate.isExchange {
      guard let number = planned.scanned, let from = planned.from, let name = from.lastComponent,
        let status = plan.scan.containers[number].entries.first?.status
      else { continue }
      let container = plan.scan.containers[number].container
      let (parent, own) =
        container.member == nil
        ? (from.parent, name) : (from.parent.parent, from.parent.lastComponent ?? "")
      let now = try Directory.open(resolved: parent).statusIfPresent(own)
      guard now?.identity == status.identity else {
        throw LifecycleError(
          .failed,
          "cannot \(plan.request.change.verb) '\(plan.request.app)': '\(planned.path)' is another "
            + "directory than when it was looked at",
          hint: "something else changed the app meanwhile: try again")
      }
    }
  }
}
