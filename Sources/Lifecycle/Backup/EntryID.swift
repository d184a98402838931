/// An entry of a backup: its container's place among the plan's, and its place in that scan.
struct EntryID: Hashable, Sendable, Comparable {
  let container: Int32
  let index: Int32

  init(_ container: Int, _ index: Int) {
    self.container = Int32(container)
    self.index = Int32(index)
  }

  static func < (left: Self, right: Self) -> Bool {
    (left.container, left.index) < (right.container, right.index)
  }
}
