internal import SystemIO

/// One container of a restore under the journal: what is noted before it is staged, and before it gets
/// its place.
final class JournaledPart {
  private let journal: OperationJournal
  private let number: Int
  private let container: ByteString
  private let root: ByteString
  /// Where a directory is noted that is opened for its move.
  var opened: OpenedNote { journal.opened }
  /// Whether something of it is neither as it was nor as stored, and waits for the recovery.
  var isUnstable: Bool {
    get { journal.isUnstable }
    set { journal.isUnstable = newValue }
  }
  /// Whether something of it gave way.
  private(set) var hasTrash = false

  init(
    _ journal: OperationJournal, _ number: Int, _ container: ByteString, root: ByteString
  ) {
    (self.journal, self.number, self.container, self.root) = (journal, number, container, root)
  }

  /// Notes that the container is going to be staged in a directory.
  func prepare(in directory: ByteString) throws(SystemError) {
    try journal.prepare(number, stagingIn: [directory])
  }

  /// The place in the trash for what gives way; nothing where nothing does.
  func trash(
    for plan: RestorePlan, in directory: borrowing Directory, probing probe: borrowing Directory
  ) throws(SystemError) -> TrashDirectory? {
    guard plan.displaces else { return nil }
    hasTrash = true
    return try TrashDirectory(
      of: journal.record, for: container, in: directory, probing: probe, root: root)
  }

  /// Notes that no further step is taken, before what is staged goes. Where there is no room for that the
  /// journal itself goes, which takes none.
  func settleSteps() throws(SystemError) {
    do throws(SystemError) { try journal.settleSteps() } catch { try journal.end() }
  }

  /// Notes the steps that are about to be taken; all that they move is on the disk.
  func move(
    _ plan: RestorePlan, _ run: RestoreRun, _ trash: TrashDirectory?
  ) throws(SystemError) {
    let steps = plan.steps(without: run.findings, hasTrash: trash != nil)
    if !steps.isEmpty { try journal.move(steps, below: run.roots(keptIn: trash?.path)) }
  }
}
