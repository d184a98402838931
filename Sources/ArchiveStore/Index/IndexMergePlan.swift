/// Which index objects are to become one: so many that of those that are left none has more than
/// half the size of the next larger one. So their number grows with the logarithm of what they hold,
/// and an entry is written again as seldom.
struct IndexMergePlan {
  /// Places in the list that was given, at least two each.
  private(set) var groups: [[Int]] = []

  /// Plans for objects of these sizes; none is made that is larger than an index object may be.
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
