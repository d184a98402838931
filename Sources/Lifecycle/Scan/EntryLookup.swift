internal import SystemIO

/// Finds entries of a scan by path, many of them: a directory's entries are sorted by name once, when
/// it is first asked for, so that n lookups in a directory of n entries cost n log n steps.
///
/// `ContainerScan.index(of:)` needs no memory and is for single paths. Not for two threads at once.
final class EntryLookup {
  private let scan: ContainerScan
  /// At the place of a directory's entries: those entries in the order of their names' bytes, once the
  /// directory was asked for.
  private var order = SpillableArray<Int32>()
  private var sorted: Set<Int> = []
  /// The directory of the last lookup with its path: the next one is mostly in the same.
  private var last: (path: ByteString, directory: Int)?
  /// How many names were compared, which tests count.
  private(set) var comparisons = 0

  init(_ scan: ContainerScan) { self.scan = scan }

  /// The entry at a path in the container; nil if the scan found none there.
  func index(of path: ByteString) -> Int? {
    guard let name = path.lastComponent else { return scan.entries.isEmpty ? nil : 0 }
    return directory(at: path.parent).flatMap { child(named: name, of: $0) }
  }

  /// The entry of that name in a directory of the scan.
  func child(named name: ByteString, of directory: Int) -> Int? {
    let places = scan.entries[directory].children
    sort(directory, places)
    var (low, high) = (places.lowerBound, places.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if precedes(Int(order[middle]), name) { low = middle + 1 } else { high = middle }
    }
    guard low < places.upperBound, scan.name(Int(order[low])) == name else { return nil }
    return Int(order[low])
  }

  private func directory(at path: ByteString) -> Int? {
    if let last, last.path == path { return last.directory }
    guard let found = index(of: path) else { return nil }
    last = (path, found)
    return found
  }

  private func sort(_ directory: Int, _ places: Range<Int>) {
    guard sorted.insert(directory).inserted else { return }
    if order.isEmpty { order = SpillableArray(repeating: 0, count: scan.entries.count) }
    let children = scan.names.withSpan { names in
      places.sorted {
        comparisons += 1
        return names.extracting(scan.entries[$0].nameRange)
          .precedes(names.extracting(scan.entries[$1].nameRange))
      }
    }
    for (place, child) in zip(places, children) { order[place] = Int32(child) }
  }

  private func precedes(_ entry: Int, _ name: ByteString) -> Bool {
    comparisons += 1
    return scan.withName(entry) { own in name.withSpan { own.precedes($0) } }
  }
}
