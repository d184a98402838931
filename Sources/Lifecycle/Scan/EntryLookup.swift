internal import SystemIO

/// Finds entries of a scan by path, many of them: a directory's entries are sorted by name once, when
/// it is first asked for, so that n lookups in a directory of n entries cost n log n steps.
///
/// `ContainerScan.index(of:)` needs no memory and is for single paths. Not for two threads at once.
final class EntryLookup {
  private let scan: ContainerScan
  /// The entries of each directory that was asked for, in the order of their names' bytes.
  private var sorted: [Int: [Int]] = [:]
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
    let children = children(of: directory)
    var (low, high) = (0, children.count)
    while low < high {
      let middle = (low + high) / 2
      if precedes(scan.entries[children[middle]], name) { low = middle + 1 } else { high = middle }
    }
    guard low < children.count, scan.name(children[low]) == name else { return nil }
    return children[low]
  }

  private func directory(at path: ByteString) -> Int? {
    if let last, last.path == path { return last.directory }
    guard let found = index(of: path) else { return nil }
    last = (path, found)
    return found
  }

  private func children(of directory: Int) -> [Int] {
    if let known = sorted[directory] { return known }
    let children = scan.entries[directory].children.sorted {
      comparisons += 1
      return scan.names[scan.entries[$0].nameRange].lexicographicallyPrecedes(
        scan.names[scan.entries[$1].nameRange])
    }
    sorted[directory] = children
    return children
  }

  private func precedes(_ entry: ScannedEntry, _ name: ByteString) -> Bool {
    comparisons += 1
    return scan.names[entry.nameRange].lexicographicallyPrecedes(name.bytes)
  }
}
