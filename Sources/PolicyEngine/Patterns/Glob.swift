/// One path component with wildcards, matched byte for byte.
///
/// Each element is a 16-bit number: a byte, `any`, `star`, or a set numbered from `firstSet`.
struct Glob: Hashable, Sendable {
  /// The elements in order; never two stars in a row.
  let codes: [UInt16]
  /// The sets that elements refer to.
  let sets: [ByteSet]
  /// The number of elements before the first star, or of all elements if there is none.
  let head: Int
  /// The number of elements after the last star; 0 if there is none.
  let tail: Int
  /// The minimum length of a name in bytes.
  let minimumCount: Int

  static let any: UInt16 = 256
  static let star: UInt16 = 257
  static let firstSet: UInt16 = 258

  init(codes: [UInt16], sets: [ByteSet]) {
    var compact: [UInt16] = []
    for code in codes where code != Self.star || compact.last != Self.star { compact.append(code) }
    // A name has at least one byte, so a single star stands for one byte and any further bytes.
    if compact == [Self.star] { compact.append(Self.any) }
    self.codes = compact
    self.sets = sets
    let first = compact.firstIndex(of: Self.star)
    head = first ?? compact.count
    tail = compact.lastIndex(of: Self.star).map { compact.count - 1 - $0 } ?? 0
    minimumCount = compact.count { $0 != Self.star }
  }

  private var hasStar: Bool { head < codes.count }

  @inline(__always)
  private func accepts(_ code: UInt16, _ byte: UInt8) -> Bool {
    if code < Self.any { return code == UInt16(byte) }
    return code == Self.any || sets[Int(code &- Self.firstSet)].contains(byte)
  }

  /// Whether the glob matches a name.
  func matches(_ name: Span<UInt8>) -> Bool {
    guard name.count >= minimumCount, hasStar || name.count == minimumCount else { return false }
    for index in 0..<head where !accepts(codes[index], name[index]) { return false }
    guard hasStar else { return true }
    let end = name.count - tail
    for index in 0..<tail where !accepts(codes[codes.count - tail + index], name[end + index]) {
      return false
    }
    return matchesMiddle(name, from: head, to: end)
  }

  /// Matches the pieces between stars, each at its first possible position, which is always
  /// sufficient.
  private func matchesMiddle(_ name: Span<UInt8>, from start: Int, to end: Int) -> Bool {
    var place = start
    var index = head + 1
    let last = codes.count - tail
    while index < last {
      let stop = codes[index..<last].firstIndex(of: Self.star) ?? last
      let count = stop - index
      while !matchesPiece(name, at: place, index: index, count: count) {
        place += 1
        if place + count > end { return false }
      }
      place += count
      index = stop + 1
    }
    return place <= end
  }

  private func matchesPiece(_ name: Span<UInt8>, at place: Int, index: Int, count: Int) -> Bool {
    guard place + count <= name.count else { return false }
    for step in 0..<count where !accepts(codes[index + step], name[place + step]) { return false }
    return true
  }

  /// Returns the bytes that an element other than a star matches.
  func set(at index: Int) -> ByteSet {
    let code = codes[index]
    if code < Self.any { return ByteSet(CollectionOfOne(UInt8(code))) }
    return code == Self.any ? .all : sets[Int(code - Self.firstSet)]
  }

  /// The bytes that a matching name can begin with.
  var firstBytes: ByteSet { head > 0 ? set(at: 0) : .all }

  /// The bytes that a matching name can end with.
  var lastBytes: ByteSet {
    if !hasStar { return set(at: codes.count - 1) }
    return tail > 0 ? set(at: codes.count - 1) : .all
  }
}
