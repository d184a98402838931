internal import ArchiveStore
internal import SystemIO

/// The lost names of a directory, as ordered ranges.
struct UnreadableRanges {
  private var runs: [UnreadableNames] = []

  var isEmpty: Bool { runs.isEmpty }

  mutating func add(_ names: UnreadableNames) {
    let place = place(of: names.last)
    if place < runs.count, runs[place] == names { return }
    runs.insert(names, at: place)
  }

  /// Whether a name may be lost.
  func contains(_ name: ByteString) -> Bool {
    let place = place(of: name)
    return place < runs.count && runs[place].contains(name)
  }

  /// Returns the index of the first range that ends at or after a name.
  private func place(of name: ByteString) -> Int {
    var range = 0..<runs.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = runs[middle].last < name ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}

extension UnreadableNames {
  /// All names, for a directory that cannot be read at all.
  static let any = UnreadableNames(
    after: nil, last: ByteString([UInt8](repeating: 0xff, count: 255)))

  /// Returns the range of a single name.
  static func one(_ name: ByteString) -> UnreadableNames {
    UnreadableNames(after: ByteString(name.bytes.dropLast()), last: name)
  }
}
