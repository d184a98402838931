internal import SystemIO

/// The places of units in the order of their paths' bytes, found without making any path.
struct PathRanks {
  private var next: UInt32 = 0

  /// Ranks the units of one container after another; containers come in the order of their paths.
  mutating func rank(_ units: inout ArraySlice<PurgeUnit>, in scan: ContainerScan) {
    guard !units.isEmpty else { return }
    var byEntry: [Int32: Int] = [:]
    var isOnTheWay = [Bool](repeating: false, count: scan.entries.count)
    for place in units.indices {
      byEntry[units[place].entry] = place
      var at = Int(units[place].entry)
      while !isOnTheWay[at] {
        isOnTheWay[at] = true
        at = Int(scan.entries[at].parent)
      }
    }
    var pending = [0]
    while let index = pending.popLast() {
      if let place = byEntry[Int32(index)] {
        units[place].rank = next
        next += 1
        continue
      }
      let children = scan.entries[index].children.filter { isOnTheWay[$0] }
      pending += Self.sorted(children, scan).reversed()
    }
  }

  /// Siblings as their paths are ordered: a folder as if a slash stood behind its name.
  private static func sorted(_ children: [Int], _ scan: ContainerScan) -> [Int] {
    let names = scan.names
    return children.sorted { left, right in
      let (a, b) = (scan.entries[left], scan.entries[right])
      let (first, second) = (names[a.nameRange], names[b.nameRange])
      var index = 0
      while index < first.count, index < second.count {
        let (x, y) = (first[first.startIndex + index], second[second.startIndex + index])
        if x != y { return x < y }
        index += 1
      }
      return end(first, index, a) < end(second, index, b)
    }
  }

  /// What stands at a place of a name, or behind it.
  private static func end(_ name: ArraySlice<UInt8>, _ index: Int, _ entry: ScannedEntry) -> Int {
    if index < name.count { return Int(name[name.startIndex + index]) }
    return entry.status.kind == .directory ? Int(UInt8(ascii: "/")) : -1
  }
}
