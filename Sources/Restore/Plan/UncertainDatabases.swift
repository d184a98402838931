package import ArchiveStore
internal import DatabaseCapture
package import SystemIO

extension Snapshot {
  /// The remarks on the databases at or below a path that the backup read without their locks or
  /// without one of their files, or with a journal whose state it could not determine, by their
  /// logical paths: the copies may be inconsistent.
  package func uncertainDatabases(in path: ByteString) -> [PathRemark] {
    databases.filter {
      $0.how == CaptureResult.Method.unlocked.rawValue && $0.path.isWithin(path)
    }.map { PathRemark(path: $0.path, remark: Self.uncertainty) }
  }

  fileprivate static let uncertainty =
    "it was in use during the backup, or its log or journal could not be opened or completed, so "
    + "this copy may be inconsistent"
}

extension RestorePlan {
  /// The remarks on those of these databases that the plan writes a file of, by their paths below
  /// the target.
  package var uncertainDatabases: [PathRemark] {
    let stored = snapshot.snapshot.uncertainDatabases(in: request.path)
    if stored.isEmpty { return [] }
    // A single requested file has the target's name, and its log has one next to it.
    let single = target.shownDepth == 0 ? target.name : nil
    let wanted = Set(stored.map { single ?? $0.path.relative(to: request.path) })
    var found: Set<ByteString> = []
    for number in tree.entries.indices
    where tree.entries[number].kind == .file && tree.entries[number].action.isWritten {
      let path = tree.path(number, from: target.shownDepth)
      for name in [path, path.databaseOfCompanion].compactMap(\.self) where wanted.contains(name) {
        found.insert(name)
      }
    }
    return found.sorted().map { PathRemark(path: $0, remark: Snapshot.uncertainty) }
  }
}
