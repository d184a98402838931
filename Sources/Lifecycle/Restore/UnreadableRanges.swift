internal import ArchiveStore
internal import SystemIO

/// What is lost of a directory's names: runs of them, in their order.
struct UnreadableRanges {
  private var runs: [LostNames] = []

  var isEmpty: Bool { runs.isEmpty }

  mutating func add(_ names: LostNames) {
    let place = place(of: names.last)
    if place < runs.count, runs[place] == names { return }
    runs.insert(names, at: place)
  }

  /// Whether a name may be among them.
  func contains(_ name: ByteString) -> Bool {
    let place = place(of: name)
    return place < runs.count && runs[place].contains(name)
  }

  /// The place of the first run that ends with a name, or behind it.
  private func place(of name: ByteString) -> Int {
    var range = 0..<runs.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = runs[middle].last < name ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}

extension LostNames {
  /// Any name: of a directory that cannot be read at all.
  static let any = LostNames(after: nil, last: ByteString([UInt8](repeating: 0xff, count: 255)))

  /// One name alone.
  static func one(_ name: ByteString) -> LostNames {
    LostNames(after: ByteString(name.bytes.dropLast()), last: name)
  }
}
