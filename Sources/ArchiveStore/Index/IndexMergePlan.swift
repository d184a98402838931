/// The groups of index objects to merge. Afterwards no object has more than half the size of the
/// next larger one, so the number of objects, and how often an entry is rewritten, grow with the
/// logarithm of the index size.
struct IndexMergePlan {
  /// Groups of indices into the given list, at least two each.
  private(set) var groups: [[Int]] = []

  /// Plans for objects of these sizes. No merged object exceeds `limit` bytes.
  init(sizes: [Int], limit: Int = FormatLimit.index) {
    var stack: [(size: Int, members: [Int])] = []
    for place in sizes.indices.sorted(by: { (sizes[$1], $0) < (sizes[$0], $1) }) {
      stack.append((sizes[place], [place]))
      while let last = stack.last, let before = stack.dropLast().last,
        last.size > before.size / 2, last.size + before.size <= limit
      {
        stack.removeLast(2)
        stack.append((before.size + last.size, before.members + last.members))
      }
    }
    groups = stack.map(\.members).filter { $0.count > 1 }
  }
}
