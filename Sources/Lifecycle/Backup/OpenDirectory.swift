internal import SystemIO

/// A directory of which some entries are still to come.
struct OpenDirectory: Sendable {
  /// How many results are to come: of entries, of directories in it, and that of the directory itself.
  private var remaining: Int
  /// The first of the directory's children in its scan.
  private let first: Int
  private var slots: SpillableArray<Slot>
  private var bytes = SpillableArray<UInt8>()
  private(set) var metadata: StoredMetadata?
  /// Files that the scan did not find, in the order of their names.
  private(set) var extras: [ItemResults.Extra] = []
  /// Whether a result came twice: then it is not known which are still to come.
  private(set) var hasSurplus = false
  private var isVisited = false
  /// The statuses of after the reading, where they are not the scan's.
  private(set) var statuses: [Int32: FileStatus] = [:]

  private struct Slot: Sendable, BitwiseCopyable {
    var start = 0
    var length: UInt32 = 0
    var isStable = false
    /// Whether a result came, that it is missed among them.
    var isDealtWith = false
  }

  /// Opens a directory with so many results to come.
  init(children: Range<Int>, awaiting remaining: Int) {
    self.remaining = remaining
    first = children.lowerBound
    slots = SpillableArray(repeating: Slot(), count: children.count)
  }

  /// Whether nothing is to come any more.
  var isComplete: Bool { remaining == 0 }

  /// Takes results; `isVisit` says that the directory itself was dealt with.
  mutating func take(_ results: borrowing ItemResults, isVisit: Bool) {
    remaining -= results.entries.count + (isVisit ? 1 : 0)
    hasSurplus = hasSurplus || (isVisit && isVisited)
    isVisited = isVisited || isVisit
    if let metadata = results.metadata { self.metadata = metadata }
    if !results.extras.isEmpty {
      extras = (extras + results.extras).sorted { $0.name < $1.name }
    }
    let start = bytes.count
    bytes.append(contentsOf: results.bytes)
    for entry in results.entries {
      let slot = Int(entry.index) - first
      hasSurplus = hasSurplus || slots[slot].isDealtWith
      slots[slot] = Slot(
        start: start + entry.range.lowerBound, length: UInt32(entry.range.count),
        isStable: entry.isStable, isDealtWith: true)
      if let status = entry.status { statuses[entry.index] = status }
    }
  }

  /// The encoded entry of a child; nothing when none came.
  func encoded(_ child: Int) -> ArraySlice<UInt8>? {
    let slot = slots[child - first]
    return slot.length == 0 ? nil : bytes.copy(slot.start..<(slot.start + Int(slot.length)))
  }

  /// Whether what came of a child may be relied on in the next run.
  func isStable(_ child: Int) -> Bool { slots[child - first].isStable }
}
