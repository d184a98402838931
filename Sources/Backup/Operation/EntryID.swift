/// The identity of an entry in a backup: the index of its container in the plan and its index in
/// the container's scan.
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
