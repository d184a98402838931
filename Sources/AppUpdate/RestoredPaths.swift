internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import Restore
internal import SystemIO

/// The entries of a snapshot that are restored to free paths of a container: the topmost paths of
/// one class, as the snapshot recorded it, with the totals below them.
struct RestoredPaths {
  private(set) var paths: [PlannedPath] = []

  init(_ part: PlannedPart) {
    let (tree, top) = (part.plan.tree, part.plan.target.shownDepth)
    let classes = ClassFilter(known: part.plan.snapshot.snapshot)
    // The index in `paths` at which an entry is counted.
    var places: [Int: Int] = [:]
    for number in tree.entries.indices {
      let entry = tree.entries[number]
      guard entry.action == .create, entry.depth >= max(top, 1) else { continue }
      let path = part.logical(part.plan.shownPath(number))
      let above = places[Int(entry.parent)]
      let dataClass = DataClass(rawValue: classes.dataClass(of: path)) ?? .unknown
      if let above, paths[above].dataClass == dataClass {
        places[number] = above
      } else {
        places[number] = paths.count
        paths.append(PlannedPath(path: path, outcome: .restored, dataClass: dataClass))
      }
      if entry.kind == .file, let place = places[number] {
        paths[place].totals.files += 1
        paths[place].totals.bytes += entry.size
      }
    }
    // The container itself is not data of the app.
    paths.removeAll { $0.path == part.path && $0.totals.files == 0 }
  }
}
