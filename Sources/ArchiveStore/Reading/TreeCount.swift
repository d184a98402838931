internal import SystemIO

extension RepositoryReader {
  /// How many paths there are below a tree. Each distinct tree is read once, however many paths lead
  /// to it, and costs some 50 bytes of memory: so a small repository that names more paths than any
  /// disk holds is seen through without going through them.
  ///
  /// Trees that are damaged, or lie deeper than trees may, count as empty, and so do such pages.
  public func countPaths(below root: TreeReference) throws(StoreError) -> UInt64 {
    var counts: [TreeReference: UInt64] = [:]
    var open = [try countedDirectory(root)]
    while var level = open.popLast() {
      guard let next = level.below.popLast() else {
        counts[level.tree] = level.paths
        continue
      }
      if let count = counts[next] {
        level.paths.addClamping(count)
        open.append(level)
      } else {
        level.below.append(next)
        open.append(level)
        if open.count < FormatLimit.depth {
          open.append(try countedDirectory(next))
        } else {
          counts[next] = 0
        }
      }
    }
    return counts[root] ?? 0
  }

  /// A directory whose entries are counted, and what is below them not yet.
  private struct CountedDirectory {
    let tree: TreeReference
    var below: [TreeReference] = []
    var paths: UInt64 = 0
  }

  private func countedDirectory(_ tree: TreeReference) throws(StoreError) -> CountedDirectory {
    var level = CountedDirectory(tree: tree)
    do {
      let directory = try openDirectory(tree)
      var number = 0
      while let page = try readOn(&number, in: directory).page {
        for entry in page.entries {
          level.paths.addClamping(1)
          if case .directory(let below) = entry.node { level.below.append(below) }
        }
        number += 1
      }
    } catch {
      guard error.kind == .damaged else { throw error }
    }
    return level
  }
}
