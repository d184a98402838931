internal import SystemIO

/// What of a container's scan is stored: the children of each folder in the order of their names.
struct KeptTree: Sendable {
  /// The container's place among the plan's.
  let number: Int
  let scan: ContainerScan
  /// At the place of a folder's children: those that are stored, in the order of their names.
  private var order: SpillableArray<Int32>
  /// How many of each folder's children are stored.
  private var counts: SpillableArray<Int32>
  /// The files that are databases by their names.
  private(set) var databases = DatabaseNames()

  /// Sorts the stored entries of a scan.
  init(_ number: Int, _ scan: ContainerScan) {
    self.number = number
    self.scan = scan
    order = SpillableArray(repeating: 0, count: scan.entries.count)
    counts = SpillableArray(repeating: 0, count: scan.entries.count)
    for (folder, entry) in scan.entries.enumerated() where entry.childCount > 0 {
      sortChildren(of: folder, entry.children)
    }
    databases = DatabaseNames(self)
  }

  /// Whether anything of the container is stored.
  var isEmpty: Bool { scan.entries.first.map { $0.fate == .leftOut } ?? true }

  /// The children of a folder that are stored, in the order of their names' bytes.
  func children(of folder: Int) -> Slice<SpillableArray<Int32>> {
    let first = Int(scan.entries[folder].firstChild)
    return order[first..<(first + Int(counts[folder]))]
  }

  func id(_ index: Int) -> EntryID { EntryID(number, index) }

  /// What of a folder is stored under a name.
  func child(_ name: Span<UInt8>, of folder: Int) -> Int? {
    let siblings = children(of: folder)
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

  private mutating func sortChildren(of folder: Int, _ range: Range<Int>) {
    var kept: [Int32] = []
    kept.reserveCapacity(range.count)
    for child in range where scan.entries[child].fate != .leftOut { kept.append(Int32(child)) }
    scan.sortByName(&kept)
    let count = Int32(kept.count)
    counts[folder] = count
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
