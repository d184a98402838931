internal import DeviceTransaction
internal import SystemIO

/// One container of a restore under a journal, which is updated before the container is staged and
/// before it is put in place.
final class JournaledPart {
  private let journal: OperationJournal
  private let number: Int
  private let container: ByteString
  private let root: ByteString
  /// The note of a directory whose permissions are opened for its move.
  var opened: OpenedNote { journal.opened }
  /// Whether the container is in neither its previous nor its stored state, and needs a recovery.
  var isUnstable: Bool {
    get { journal.isUnstable }
    set { journal.isUnstable = newValue }
  }
  /// Whether entries of it were moved to the trash.
  private(set) var hasTrash = false

  init(
    _ journal: OperationJournal, number: Int, container: ByteString, root: ByteString
  ) {
    (self.journal, self.number, self.container, self.root) = (journal, number, container, root)
  }

  /// Records that the container is about to be staged in a directory.
  func prepare(in directory: ByteString) throws(SystemError) {
    try journal.prepare(number, stagingIn: [directory])
  }

  /// Returns the trash directory for replaced entries; nil if nothing is replaced.
  func trash(
    for plan: RestorePlan, in directory: borrowing Directory, probing probe: borrowing Directory
  ) throws(SystemError) -> TrashDirectory? {
    guard plan.displaces else { return nil }
    hasTrash = true
    return try TrashDirectory(
      of: journal.record, for: container, in: directory, probing: probe, root: root)
  }

  /// Records that no further step follows, before the staged entries are removed. If there is no
  /// room for that, the journal is removed, which needs none.
  func settleSteps() throws(SystemError) {
    do throws(SystemError) { try journal.settleSteps() } catch { try journal.end() }
  }

  /// Records the steps that are about to be taken; all entries that they move are on disk.
  func move(
    _ plan: RestorePlan, from run: RestoreRun, keepingIn trash: TrashDirectory?
  ) throws(SystemError) {
    let steps = plan.steps(without: run.findings, hasTrash: trash != nil)
    if !steps.isEmpty { try journal.move(steps, below: run.roots(keptIn: trash?.path)) }
  }
}
