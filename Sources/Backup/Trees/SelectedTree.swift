internal import DatabaseCapture
internal import DeviceScan
internal import SandboxModel
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
    for (offset, child) in kept.enumerated() { order[range.lowerBound + offset] = child }
  }
}

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

extension [SelectedTree] {
  /// Returns the logical path of an entry of these trees, all of a backup.
  func logicalPath(of id: EntryID) -> ByteString {
    self[Int(id.container)].scan.logicalPath(Int(id.index))
  }
}

extension SelectedTree {
  /// The files of a container that are databases by their names: those with a log or a journal
  /// beside them. Whether a file that has only a journal is a database is determined when it is
  /// read.
  struct DatabaseNames: Sendable {
    /// The log and the journal of each such file, in this order.
    private(set) var companions: [Int32: [Int32]] = [:]
    private var members: Set<Int32> = []

    /// Creates an empty set.
    init() {}

    /// Finds the databases among the stored entries.
    init(_ tree: borrowing SelectedTree) {
      for (index, entry) in tree.scan.entries.enumerated()
      where entry.status.kind == .file && entry.selection != .excluded && index > 0 {
        guard let database = Self.database(of: index, in: tree) else { continue }
        companions[Int32(database), default: []].append(Int32(index))
        members.formUnion([Int32(database), Int32(index)])
      }
    }

    /// Returns the file that a log or a journal belongs to. A log has no log of its own: each file
    /// belongs to at most one database.
    private static func database(of index: Int, in tree: borrowing SelectedTree) -> Int? {
      let parent = Int(tree.scan.entries[index].parent)
      let found = tree.scan.withName(index) { name -> Int? in
        guard let suffix = suffixes.first(where: { name.hasSuffix($0.span) }) else { return nil }
        return tree.child(name.extracting(0..<(name.count - suffix.count)), of: parent)
      }
      guard let database = found, tree.scan.entries[database].status.kind == .file,
        Self.database(of: database, in: tree) == nil
      else { return nil }
      return database
    }

    private static let suffixes = [DatabaseMember.log, .journal].map(\.suffix)

    /// Whether a file is a database, a log or a journal by its name.
    func isMember(_ index: Int) -> Bool { !members.isEmpty && members.contains(Int32(index)) }
  }

  /// The missing entries of a container, including all below them. `check` must be called in the
  /// order of the scan.
  struct MissingEntries {
    private let tree: SelectedTree
    private var missing: Set<Int32>

    init(_ tree: SelectedTree, _ missing: ByContainer) {
      self.tree = tree
      self.missing = Set((missing[Int32(tree.number)] ?? []).lazy.map(\.index))
    }

    /// Missing entries by container, grouped once for all containers.
    typealias ByContainer = [Int32: [EntryID]]

    mutating func check(_ index: Int) -> Bool {
      if missing.isEmpty { return false }
      if missing.contains(Int32(index)) { return true }
      guard index > 0, missing.contains(tree.scan.entries[index].parent) else { return false }
      missing.insert(Int32(index))
      return true
    }
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
