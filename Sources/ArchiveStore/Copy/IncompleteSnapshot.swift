internal import SystemIO

/// A snapshot that cannot be restored completely.
public struct IncompleteSnapshot: Sendable {
  public let head: SnapshotHead
  /// The losses by path, and their number. Above 4 MiB they are summarized.
  public let lost: [PathNote]
  public let losses: Int

  /// Returns nil if everything in the snapshot can be restored.
  init?(
    _ head: SnapshotHead, _ trees: inout TreeRepair, read: (SnapshotID) throws -> StoredSnapshot
  ) throws {
    self.head = head
    do {
      if try trees.repair(head.tree) == .whole { return nil }
      let survey = try TreeSurvey(read(head.id).snapshot, trees)
      (lost, losses) = (survey.notes.notes, max(1, survey.notes.count))
    } catch let error as StoreError where error.kind == .damaged {
      (lost, losses) = ([PathNote(path: "", note: error.reason)], 1)
    }
  }
}
