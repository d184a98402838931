internal import ArchiveStore
internal import SystemIO

/// The limit on the size of a plan: trees may share subtrees, so a small repository can name more
/// paths than memory and disk hold (docs/repository-format.md, "What a reader refuses").
///
/// Checked repeatedly while a plan grows. A restore to a new target is refused as soon as its
/// trees, read once each, show that it does not fit; any other restore is refused when it would
/// create more entries than the volume has room for.
struct PlanLimit {
  /// The number of entries at the next check; it doubles with each check.
  private var next: Int
  private var isFirst = true
  private let target: RestoreTarget
  /// The tree to restore completely to a new target; nil for any other restore.
  private let whole: TreeReference?

  /// About 30 MB, and more entries than most snapshots have.
  static let first = 1 << 18

  init(_ target: RestoreTarget, whole: TreeReference?, first: Int = Self.first) {
    (self.target, self.whole, next) = (target, whole, first)
  }

  /// Refuses a plan that does not fit.
  mutating func check(
    _ tree: PlannedTree, creating: Int, from reader: RepositoryReader
  ) throws {
    if tree.isFull {
      throw refusal(.limitExceeded, "too many files and directories for one restore")
    }
    guard tree.entries.count >= next else { return }
    guard let room = Self.room(at: target) else { return }
    var count = UInt64(creating)
    if isFirst, let whole { count = try reader.countPaths(below: whole) }
    next *= 2
    isFirst = false
    guard count > room else { return }
    throw refusal(
      .noSpace,
      "\(count == .max ? "2^64" : "\(count)") files and directories are needed, "
        + "but only \(room) more fit")
  }

  /// Returns the number of files and directories that the volume has room for. A file system that
  /// does not count them reports 0, and needs at least 512 bytes for each.
  private static func room(at target: RestoreTarget) -> UInt64? {
    guard let space = try? Directory.open(path: target.directory).space() else { return nil }
    return space.availableInodes > 0 ? space.availableInodes : space.available / 512
  }

  private func refusal(_ code: ErrorCode, _ reason: String) -> OperationError {
    OperationError(
      .failed, code: code, "restore to", subject: target.directory,
      reason: reason,
      hint: "restore a part of it with 'SNAP:PATH'; 'sandboxctl ls SNAP' lists the paths")
  }
}
