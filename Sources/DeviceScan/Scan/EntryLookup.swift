internal import SandboxModel
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
  /// The directory of the last lookup and its path: most lookups are in the same directory as the
  /// one before.
  private var last: (path: ByteString, directory: Int)?

  public init(_ scan: ContainerScan) { self.scan = scan }

  /// Returns the entry at a path in the container, or nil if the scan found none there.
  public func index(of path: ByteString) -> Int? {
    guard let name = path.lastComponent else { return scan.entries.isEmpty ? nil : 0 }
    return directory(at: path.parent).flatMap { child(named: name, of: $0) }
  }

  /// Whether the scan could not list the directory at a path completely, or the nearest one above
  /// it that it found.
  public func isUnlisted(at path: ByteString) -> Bool {
    var path = path
    while true {
      if let index = index(of: path) {
        return scan.entries[index].isUnreadable || scan.entries[index].isStale
      }
      if path.isEmpty { return true }
      path = path.parent
    }
  }

  /// Returns the entry with a name in a directory of the scan, or nil if there is none.
  public func child(named name: ByteString, of directory: Int) -> Int? {
    let slots = scan.entries[directory].children
    sort(directory, slots)
    var (low, high) = (slots.lowerBound, slots.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if precedes(Int(order[middle]), name) { low = middle + 1 } else { high = middle }
    }
    guard low < slots.upperBound, scan.name(Int(order[low])) == name else { return nil }
    return Int(order[low])
  }

  private func directory(at path: ByteString) -> Int? {
    if let last, last.path == path { return last.directory }
    guard let found = index(of: path) else { return nil }
    last = (path, found)
    return found
  }

  private func sort(_ directory: Int, _ slots: Range<Int>) {
    guard sorted.insert(directory).inserted else { return }
    if order.isEmpty { order = SpillableArray(repeating: 0, count: scan.entries.count) }
    let children = scan.names.withSpan { names in
      slots.sorted {
        names.extracting(scan.entries[$0].nameRange)
          .precedes(names.extracting(scan.entries[$1].nameRange))
      }
    }
    for (slot, child) in zip(slots, children) { order[slot] = Int32(child) }
  }

  private func precedes(_ entry: Int, _ name: ByteString) -> Bool {
    scan.withName(entry) { own in name.withSpan { own.precedes($0) } }
  }
}

/// Finds many entries of a device's scans by logical path, as `EntryLookup` does in one container.
/// For use by one thread at a time.
public final class LogicalPathLookup {
  private let scans: [ContainerScan]
  /// The indexes of the scans by the logical path of their root.
  private let numbers: [ByteString: Int]
  private var lookups: [Int: EntryLookup] = [:]

  public init(_ scans: [ContainerScan]) {
    self.scans = scans
    numbers = Dictionary(scans.enumerated().map { ($1.container.logicalPrefix, $0) }) {
      first, _ in first
    }
  }

  /// Returns the entry at a logical path and its container's scan, or nil if the scans found none.
  public func entry(at path: ByteString) -> (scan: ContainerScan, index: Int)? {
    let parts = path.components
    for depth in stride(from: parts.count, through: 1, by: -1) {
      guard let number = numbers[ByteString(joining: parts.prefix(depth))] else { continue }
      let rest = ByteString(joining: parts.dropFirst(depth))
      return lookup(number).index(of: rest).map { (scans[number], $0) }
    }
    return nil
  }

  private func lookup(_ number: Int) -> EntryLookup {
    if let lookup = lookups[number] { return lookup }
    let lookup = EntryLookup(scans[number])
    lookups[number] = lookup
    return lookup
  }
}
