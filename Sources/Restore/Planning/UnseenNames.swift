internal import SystemIO

/// The names in an existing directory that a walk of the snapshot has not found yet. The walk finds
/// names in the order of their bytes, so most removals need no search.
///
/// The names are in tables that can leave memory (docs/decisions/0022).
struct UnseenNames {
  private var bytes = SpillableArray<UInt8>()
  /// The ends of the names in `bytes`, in the order of the listing.
  private var ends = SpillableArray<Int>()
  /// The positions of the names in `ends`, in the order of the names.
  private var order = SpillableArray<UInt32>()
  private var isSeen = SpillableArray<Bool>()
  /// The number of names that have not been found.
  private(set) var count = 0
  /// The index in `order` after the last name that was found.
  private var next = 0

  /// Lists a directory.
  init(of directory: borrowing Directory) throws(SystemError) {
    var (bytes, ends) = (SpillableArray<UInt8>(), SpillableArray<Int>())
    try directory.forEachName { name in
      bytes.append(name)
      ends.append(bytes.count)
    }
    (self.bytes, self.ends, count) = (bytes, ends, ends.count)
    isSeen = SpillableArray(repeating: false, count: count)
    sort()
  }

  private mutating func sort() {
    order = bytes.withSpan { bytes in
      SpillableArray(
        (0..<UInt32(count)).sorted {
          bytes.extracting(range($0)).precedes(bytes.extracting(range($1)))
        })
    }
  }

  private func range(_ index: UInt32) -> Range<Int> {
    (index == 0 ? 0 : ends[Int(index) - 1])..<ends[Int(index)]
  }

  /// Records that a name has been found, if the directory has it.
  mutating func remove(_ name: ByteString) {
    guard let index = index(of: name), !isSeen[index] else { return }
    isSeen[index] = true
    count -= 1
    next = index + 1
  }

  /// The names that have not been found.
  var names: Set<ByteString> {
    var names = Set<ByteString>(minimumCapacity: count)
    for index in order.indices where !isSeen[index] {
      names.insert(ByteString(bytes.copy(range(order[index]))))
    }
    return names
  }

  /// Returns the index of a name in `order`, or nil if the directory does not have it.
  private func index(of name: ByteString) -> Int? {
    if next < order.count, hasName(name, at: next) { return next }
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if precedes(middle, name) { low = middle + 1 } else { high = middle }
    }
    return low < order.count && hasName(name, at: low) ? low : nil
  }

  private func hasName(_ name: ByteString, at index: Int) -> Bool {
    bytes.withSpan { bytes in
      name.withSpan { bytes.extracting(range(order[index])).hasSameBytes(as: $0) }
    }
  }

  private func precedes(_ index: Int, _ name: ByteString) -> Bool {
    bytes.withSpan { bytes in
      name.withSpan { bytes.extracting(range(order[index])).precedes($0) }
    }
  }
}
