public import SystemIO

/// Finds many entries of a scan by path. The entries of a directory are sorted by name once, on
/// first use, so that n lookups in a directory of n entries cost n log n steps.
///
/// `ContainerScan.index(of:)` needs no memory and is for single paths. For use by one thread at a
/// time.
public final class EntryLookup {
  private let scan: ContainerScan
  /// The entries of each directory that was used, in the order of their names' bytes, at the
  /// indexes of its children.
  private var order = SpillableArray<Int32>()
  private var sorted: Set<Int> = []
  /// The directory of the last lookup and its path: most lookups are in the same directory as the one before.
  private var last: (path: ByteString, directory: Int)?

  public init(_ scan: ContainerScan) { self.scan = scan }

  /// Returns the entry at a path in the container, or nil if the scan found none there.
  public func index(of path: ByteString) -> Int? {
    guard let name = path.lastComponent else { return scan.entries.isEmpty ? nil : 0 }
    return directory(at: path.parent).flatMap { child(named: name, of: $0) }
  }

  /// Returns the entry with a name in a directory of the scan, or nil if there is none.
  public func child(named name: ByteString, of directory: Int) -> Int? {
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
        names.extracting(scan.entries[$0].nameRange)
          .precedes(names.extracting(scan.entries[$1].nameRange))
      }
    }
    for (place, child) in zip(places, children) { order[place] = Int32(child) }
  }

  private func precedes(_ entry: Int, _ name: ByteString) -> Bool {
    scan.withName(entry) { own in name.withSpan { own.precedes($0) } }
  }
}
