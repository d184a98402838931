internal import ArchiveStore
internal import SystemIO

/// How large a plan may become: trees may share what is below them, so that a small repository can
/// name more paths than memory and disk hold (docs/repository-format.md, "What a reader refuses").
///
/// Asked now and then as a plan grows. A restore to a new place is refused as soon as its trees, read
/// once each, show that it does not fit; any other when it would make more than the volume has room
/// for.
struct PlanLimit {
  /// At how many entries it is asked next: each time that there are twice as many.
  private var next: Int
  private var isFirst = true
  private let place: RestoreTarget
  /// What comes back whole, where nothing is there yet.
  private let whole: TreeReference?

  /// Some 30 MB, and more entries than most snapshots have.
  static let first = 1 << 18

  init(_ place: RestoreTarget, whole: TreeReference?, first: Int = Self.first) {
    (self.place, self.whole, next) = (place, whole, first)
  }

  /// Refuses what does not fit.
  mutating func check(
    _ tree: PlannedTree, creating: Int, from reader: RepositoryReader
  ) throws {
    if tree.isFull { throw refusal("so many files and directories cannot be restored at once") }
    guard tree.entries.count >= next else { return }
    guard let room = Self.room(at: place) else { return }
    var count = UInt64(creating)
    if isFirst, let whole { count = try reader.countPaths(below: whole) }
    next *= 2
    isFirst = false
    guard count > room else { return }
    throw refusal(
      "\(count == .max ? "2^64" : "\(count)") files and directories are to be made, and there is room for "
        + "\(room)")
  }

  /// How many files and directories the volume takes at most: a file system that does not count them says
  /// 0, and keeps none in less than 512 bytes.
  private static func room(at place: RestoreTarget) -> UInt64? {
    guard let space = try? Directory.open(path: place.directory).space() else { return nil }
    return space.availableInodes > 0 ? space.availableInodes : space.available / 512
  }

  private func refusal(_ reason: String) -> LifecycleError {
    LifecycleError(
      .failed, "cannot restore to '\(place.directory)': \(reason)",
      hint: "restore a part of it: 'SNAP:PATH'; 'ls SNAP' lists what is there")
  }
}
