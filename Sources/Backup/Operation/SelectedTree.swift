internal import DeviceScan
internal import SystemIO

/// The stored entries of a container's scan, with the children of each directory in the order of
/// names.
struct SelectedTree: Sendable {
  /// The index of the container in the plan.
  let number: Int
  let scan: ContainerScan
  /// The stored children of each directory in the order of names, beginning at its first child's
  /// index.
  private var order: SpillableArray<Int32>
  /// The number of stored children of each directory.
  private var counts: SpillableArray<Int32>
  /// The files that are databases by their names.
  private(set) var databases = DatabaseNames()

  /// Sorts the stored entries of a scan.
  init(_ number: Int, _ scan: ContainerScan) {
    self.number = number
    self.scan = scan
    order = SpillableArray(repeating: 0, count: scan.entries.count)
    counts = SpillableArray(repeating: 0, count: scan.entries.count)
    for (directory, entry) in scan.entries.enumerated() where entry.childCount > 0 {
      sortChildren(of: directory, entry.children)
    }
    databases = DatabaseNames(self)
  }

  /// Whether nothing of the container is stored.
  var isEmpty: Bool { scan.entries.first.map { $0.selection == .excluded } ?? true }

  /// Returns the stored children of a directory, in the order of their names' bytes.
  func children(of directory: Int) -> Slice<SpillableArray<Int32>> {
    let first = Int(scan.entries[directory].firstChild)
    return order[first..<(first + Int(counts[directory]))]
  }

  func id(_ index: Int) -> EntryID { EntryID(number, index) }

  /// Returns the stored child of a directory with a name, or nil if there is none.
  func child(_ name: Span<UInt8>, of directory: Int) -> Int? {
    let siblings = children(of: directory)
    return scan.names.withSpan { names in
      var (low, high) = (siblings.startIndex, siblings.endIndex)
      while low < high {
        let middle = (low + high) / 2
        let other = names.extracting(scan.entries[Int(siblings[middle])].nameRange)
        if other.precedes(name) { low = middle + 1 } else { high = middle }
      }
      guard low < siblings.endIndex else { return nil }
      let found = Int(siblings[low])
      return name.precedes(names.extracting(scan.entries[found].nameRange)) ? nil : found
    }
  }

  private mutating func sortChildren(of directory: Int, _ range: Range<Int>) {
    var kept: [Int32] = []
    kept.reserveCapacity(range.count)
    for child in range where scan.entries[child].selection != .excluded {
      kept.append(Int32(child))
    }
    scan.sortByName(&kept)
    let count = Int32(kept.count)
    counts[directory] = count
    for (place, child) in kept.enumerated() { order[range.lowerBound + place] = child }
  }
}

extension ContainerScan {
  /// Sorts entries by the bytes of their names.
  fileprivate func sortByName(_ entries: inout [Int32]) {
    names.withSpan { names in
      entries.sort {
        names.extracting(self.entries[Int($0)].nameRange)
          .precedes(names.extracting(self.entries[Int($1)].nameRange))
      }
    }
  }
}
