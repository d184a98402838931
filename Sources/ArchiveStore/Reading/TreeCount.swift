internal import SystemIO

extension RepositoryReader {
  /// Returns the number of paths below a tree. Each distinct tree is read once, and takes about 50
  /// bytes of memory, however many paths lead to it. A small repository that names more paths than
  /// any disk can hold is therefore counted without visiting them.
  ///
  /// Damaged trees and pages, and trees beyond the maximum depth, count as empty.
  package func countPaths(below root: TreeReference) throws(StoreError) -> UInt64 {
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

  /// A directory whose own entries are counted; the trees in `below` are not counted yet.
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
      while let page = try readNext(&number, in: directory).page {
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
