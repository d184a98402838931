internal import SystemIO

/// A directory that awaits the results for some of its entries.
struct OpenDirectory: Sendable {
  /// The number of results awaited: for entries, for directories in it, and for the directory
  /// itself.
  private var remaining: Int
  /// The index of the directory's first child in its scan.
  private let first: Int
  private var slots: SpillableArray<Slot>
  private var bytes = SpillableArray<UInt8>()
  private(set) var metadata: StoredMetadata?
  /// Files that the scan did not find, in the order of their names.
  private(set) var extras: [ItemResults.Extra] = []
  /// Whether a result arrived twice: then it is unknown which ones are still missing.
  private(set) var hasSurplus = false
  private var isVisited = false
  /// The statuses after reading that differ from the scanned ones.
  private(set) var statuses: [Int32: FileStatus] = [:]

  private struct Slot: Sendable, BitwiseCopyable {
    var start = 0
    var length: UInt32 = 0
    var isStable = false
    /// Whether a result arrived, even if only that the entry is missing.
    var isDealtWith = false
  }

  /// Opens a directory that awaits `remaining` results.
  init(children: Range<Int>, awaiting remaining: Int) {
    self.remaining = remaining
    first = children.lowerBound
    slots = SpillableArray(repeating: Slot(), count: children.count)
  }

  /// Whether all results have arrived.
  var isComplete: Bool { remaining == 0 }

  /// Adds results. `isVisit` is true if the directory itself was processed.
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

  /// Returns the encoded entry of a child, or nil if none arrived.
  func encoded(_ child: Int) -> ArraySlice<UInt8>? {
    let slot = slots[child - first]
    return slot.length == 0 ? nil : bytes.copy(slot.start..<(slot.start + Int(slot.length)))
  }

  /// Whether the next run can rely on the result for a child.
  func isStable(_ child: Int) -> Bool { slots[child - first].isStable }
}
