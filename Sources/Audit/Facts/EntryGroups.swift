internal import DeviceScan
internal import SystemIO

/// The entries of a container that match a condition, grouped: an entry whose directory matches too
/// belongs to the group of that directory; any other entry begins a group.
struct EntryGroups {
  private(set) var groups: [Group] = []

  /// A group of entries.
  struct Group {
    /// The index of the topmost entry.
    let index: Int
    /// The files of the group.
    var totals = EntryTotals()
  }

  /// Groups the entries of a container in one pass.
  ///
  /// - Parameter includesBelow: Whether everything below a matching directory belongs to its group.
  init(
    _ scan: ContainerScan, includesBelow: Bool = false, where matches: (Int) -> Bool
  ) {
    // The groups of matching directories; a directory precedes everything below it.
    var numbers: [Int: Int] = [:]
    for index in scan.entries.indices {
      let entry = scan.entries[index]
      let above = index > 0 ? numbers[Int(entry.parent)] : nil
      guard (includesBelow && above != nil) || matches(index) else { continue }
      let number = above ?? groups.count
      if above == nil { groups.append(Group(index: index)) }
      groups[number].totals.add(entry.status)
      if entry.status.kind == .directory { numbers[index] = number }
    }
  }
}

extension ContainerScan {
  /// Returns the files at and below an entry.
  func totals(below top: Int, where isCounted: (Int) -> Bool = { _ in true }) -> EntryTotals {
    var (totals, pending) = (EntryTotals(), [top])
    while let index = pending.popLast() {
      if isCounted(index) { totals.add(entries[index].status) }
      if entries[index].status.kind == .directory { pending += entries[index].children }
    }
    return totals
  }
}
