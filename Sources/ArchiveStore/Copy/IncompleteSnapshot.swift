internal import SystemIO

/// A snapshot that cannot be restored completely.
public struct IncompleteSnapshot: Sendable {
  public let head: SnapshotHead
  /// The losses by path, and their number. Above 4 MiB they are summarized.
  public let lost: [PathNote]
  public let losses: Int
  /// Whether nothing is known to be lost: the key lacks an older identity, which may open the rest.
  public let needsOlderKey: Bool

  /// Returns nil if everything in the snapshot can be restored.
  ///
  /// - Parameter needsOlderKey: whether all that was not read needs an older identity.
  init?(
    _ head: SnapshotHead, _ trees: inout TreeRepair, needsOlderKey: Bool,
    read: (SnapshotID) throws -> StoredSnapshot
  ) throws {
    (self.head, self.needsOlderKey) = (head, needsOlderKey)
    do {
      if try trees.repair(head.tree) == .whole { return nil }
      let survey = try TreeSurvey(read(head.id).snapshot, trees)
      let notes = survey.notes.notes
      lost =
        needsOlderKey
        ? notes.map { PathNote(path: $0.path, note: "the key lacks an older identity") } : notes
      losses = max(1, survey.notes.count)
    } catch let error as StoreError where error.kind == .damaged {
      (lost, losses) = ([PathNote(path: "", note: error.reason)], 1)
    }
  }
}
