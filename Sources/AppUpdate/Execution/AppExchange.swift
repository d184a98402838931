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
// The journal, the staging directories and the steps are those of a `StagedExchange`.

/// The staging of an operation on an app, and the steps that put it in place.
final class AppExchange {
  let plan: AppChangePlan
  private let exchange: StagedExchange
  /// The entries that move to the trash: the index of the planned container, the entry in its scan,
  /// and the path in the trash.
  private(set) var kept: [(container: Int, entry: Int, path: ByteString)] = []
  /// The restored paths by planned container, each with the path in the trash at which the replaced
  /// entry is kept.
  var displaced: [Int: [(inner: ByteString, path: ByteString)]] = [:]
  /// Remarks on optional entries that could not be staged, such as outside data that an app's
  /// migration names.
  var remarks: [PathRemark] = []
  /// The staged data restored from a snapshot.
  var parts: [StagedPart] = []
  private var trashes: [TrashPlace: TrashDirectory] = [:]
  /// The ID of the snapshot that was made first; the trash records it.
  var saved: String?

  /// A logical path and the directory whose entries move to the trash below it. Containers below
  /// one logical path, such as a bundle and its app's data, can be on different volumes, each with
  /// a trash of its own.
  private struct TrashPlace: Hashable {
    let logical: ByteString
    let directory: ByteString
  }

  init(_ plan: AppChangePlan, _ journal: OperationJournal) {
    self.plan = plan
    exchange = StagedExchange(
      on: plan.device, under: journal,
      StagedExchange.Wording(
        verb: plan.request.change.verb, noun: plan.request.change.rawValue,
        subject: plan.request.app.bytes))
  }

  var journal: OperationJournal { exchange.journal }

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
    try exchange.prepare(in: directories)
  }

  /// Returns the directory that contains a path, with its staging directory.
  func area(around path: ByteString) throws(SystemError) -> StagedExchange.StagingArea {
    try exchange.area(at: path.parent)
  }

  // MARK: - Steps

  /// Returns the index of a root, for use in steps.
  func root(_ path: ByteString, inode: UInt64?) -> Int {
    exchange.root(path, inode: inode)
  }

  /// Returns the index of the root of an existing directory.
  func root(_ directory: borrowing Directory) throws(SystemError) -> Int {
    try exchange.root(directory)
  }

  func add(_ step: JournalStep) { exchange.add(step) }

  /// Returns the directory at a path, with its staging directory.
  func area(at path: ByteString) throws(SystemError) -> StagedExchange.StagingArea {
    try exchange.area(at: path)
  }

  /// Returns the index of the root of the trash for a container's logical path, or for the path
  /// above it.
  func trash(for logical: ByteString, from area: StagedExchange.StagingArea) throws(SystemError)
    -> Int
  {
    try trashDirectory(for: logical, from: area).number
  }

  /// Returns the index of the root of the trash for a logical path, with the trash directory
  /// itself.
  func trashDirectory(
    for logical: ByteString, from area: StagedExchange.StagingArea
  ) throws(SystemError) -> (number: Int, directory: TrashDirectory) {
    let place = TrashPlace(logical: logical, directory: area.directory.path)
    if let known = trashes[place] { return (root(known.path, inode: nil), known) }
    let trash = try TrashDirectory(
      of: journal.record, saved: saved, for: logical, in: area.directory,
      probing: area.staging.tree, root: plan.device.root)
    trashes[place] = trash
    return (root(trash.path, inode: nil), trash)
  }

  /// Records an entry that will be in the trash, so that it can be checked for late changes there.
  func record(_ entry: Int, of container: Int, under root: Int, at path: ByteString) {
    kept.append((container, entry, exchange.roots[root].path.appending(path)))
  }

  // MARK: - Execution

  /// Syncs the entries that the steps will move, and checks that everything is still where the plan
  /// found it.
  func sync() throws {
    try exchange.sync()
    try requireAsPlanned()
  }

  /// Records the steps in the journal and applies them. If one cannot be applied, all are rolled
  /// back.
  ///
  /// - Returns: the duration of the renames in seconds.
  func run() throws(OperationError) -> Double { try exchange.run() }

  /// Syncs the volumes and removes the staging directories.
  func finish() throws(OperationError) { try exchange.finish() }

  /// Moves directories to the trash that were created under an old name after the exchange, for
  /// example by a program that remembered the path.
  func removeLeftovers() -> [PathRemark] {
    var found: [PathRemark] = []
    for planned in plan.containers where planned.action == .move || planned.action == .remove {
      guard let from = planned.from, let name = from.lastComponent, planned.to != from,
        let area = try? area(around: from),
        (try? area.directory.statusIfPresent(name)) != nil
      else { continue }
      var remark = "it was created again at '\(from)' and moved to the trash"
      do {
        let trash = try Directory.make(
          path: exchange.roots[try trash(for: planned.path, from: area)].path,
          permissions: 0o700)
        // The journal has ended, so no recovery would read a note.
        try area.directory.preserve(name, in: trash, as: name, leaving: true, nil)
      } catch { remark = "it was created again at '\(from)' and stays there: \(error)" }
      found.append(PathRemark(path: planned.path, remark: remark))
    }
    return found
  }

  /// Removes the staging directories if no step was applied or recorded.
  func abandon() { exchange.abandon() }

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
