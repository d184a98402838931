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
    var position = start
    var index = head + 1
    let last = codes.count - tail
    while index < last {
      let stop = codes[index..<last].firstIndex(of: Self.star) ?? last
      let count = stop - index
      while !matchesPiece(name, at: position, index: index, count: count) {
        position += 1
        if position + count > end { return false }
      }
      position += count
      index = stop + 1
    }
    return position <= end
  }

  private func matchesPiece(_ name: Span<UInt8>, at position: Int, index: Int, count: Int) -> Bool {
    guard position + count <= name.count else { return false }
    for step in 0..<count where !accepts(codes[index + step], name[position + step]) {
      return false
    }
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

extension Glob {
  /// Matches every non-empty name.
  static let anyName = Glob(codes: [star, any], sets: [])

  /// Whether this glob matches every name that the other glob matches.
  ///
  /// True is definite; false can be wrong for globs with many stars.
  func includes(_ other: Glob) -> Bool {
    WildcardRelation(
      outer: codes.count, isOuterStar: { codes[$0] == Self.star },
      inner: other.codes.count, isInnerStar: { other.codes[$0] == Self.star },
      covers: { set(at: $0).isSuperset(of: other.set(at: $1)) },
      coversAny: { set(at: $0) == .all }
    ).includes()
  }

  /// Returns a name that both globs match, or nil if there is none.
  func commonName(with other: Glob) -> [UInt8]? {
    var seen: Set<Int> = []
    var name: [UInt8] = []
    return findCommon(with: other, mine: 0, theirs: 0, name: &name, seen: &seen) ? name : nil
  }

  private func findCommon(
    with other: Glob, mine: Int, theirs: Int, name: inout [UInt8], seen: inout Set<Int>
  ) -> Bool {
    if mine == codes.count, theirs == other.codes.count { return !name.isEmpty }
    guard seen.insert(mine * (other.codes.count + 1) + theirs).inserted else { return false }
    let isStar = mine < codes.count && codes[mine] == Self.star
    let isOtherStar = theirs < other.codes.count && other.codes[theirs] == Self.star
    if mine < codes.count, theirs < other.codes.count, !(isStar && isOtherStar) {
      let mySet = isStar ? ByteSet.all : set(at: mine)
      let theirSet = isOtherStar ? ByteSet.all : other.set(at: theirs)
      if let byte = mySet.intersection(theirSet).sample {
        name.append(byte)
        let next = (mine + (isStar ? 0 : 1), theirs + (isOtherStar ? 0 : 1))
        if findCommon(with: other, mine: next.0, theirs: next.1, name: &name, seen: &seen) {
          return true
        }
        name.removeLast()
      }
    }
    if isStar, findCommon(with: other, mine: mine + 1, theirs: theirs, name: &name, seen: &seen) {
      return true
    }
    return isOtherStar
      && findCommon(with: other, mine: mine, theirs: theirs + 1, name: &name, seen: &seen)
  }

  /// Returns a name that the glob matches, with each star replaced by `star`, or nil if a set is
  /// empty.
  func sample(filling star: [UInt8]) -> [UInt8]? {
    var name: [UInt8] = []
    for index in codes.indices {
      if codes[index] == Self.star {
        name.append(contentsOf: star)
      } else {
        guard let byte = set(at: index).sample else { return nil }
        name.append(byte)
      }
    }
    return name.isEmpty ? [UInt8(ascii: "z")] : name
  }

  /// The bytes, or nil if the glob has a wildcard.
  var literal: [UInt8]? {
    codes.allSatisfy { $0 < Self.any } ? codes.map { UInt8($0) } : nil
  }

  /// Returns the glob with the text between wildcards in another Unicode spelling.
  func spelled(_ spelling: Spelling) -> Glob {
    guard spelling != .written, codes.contains(where: { 0x80..<Self.any ~= $0 }) else {
      return self
    }
    var spelled: [UInt16] = []
    var run: [UInt8] = []
    for code in codes {
      if code < Self.any {
        run.append(UInt8(code))
      } else {
        spelled.append(contentsOf: spelling.spell(run).map { UInt16($0) })
        run = []
        spelled.append(code)
      }
    }
    spelled.append(contentsOf: spelling.spell(run).map { UInt16($0) })
    return Glob(codes: spelled, sets: sets)
  }

  /// The glob with each ASCII letter in both cases.
  var ignoringCase: Glob {
    var sets = sets.map(\.ignoringCase)
    var codes: [UInt16] = []
    for code in self.codes {
      guard code < Self.any, let pair = ByteSet.bothCases(of: UInt8(code)) else {
        codes.append(code)
        continue
      }
      let index = sets.firstIndex(of: pair) ?? sets.count
      if index == sets.count { sets.append(pair) }
      codes.append(Self.firstSet + UInt16(index))
    }
    return Glob(codes: codes, sets: sets)
  }
}

/// A set of bytes, such as `[a-z]` in a pattern.
struct ByteSet: Hashable, Sendable {
  private var word0: UInt64 = 0
  private var word1: UInt64 = 0
  private var word2: UInt64 = 0
  private var word3: UInt64 = 0

  /// All bytes permitted in a file name: all except the slash.
  static let all: ByteSet = {
    var set = ByteSet()
    for byte in UInt8.min...UInt8.max where byte != UInt8(ascii: "/") { set.insert(byte) }
    return set
  }()

  init() {}

  init(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { insert(byte) }
  }

  @inline(__always)
  func contains(_ byte: UInt8) -> Bool {
    let word =
      switch byte >> 6 {
      case 0: word0
      case 1: word1
      case 2: word2
      default: word3
      }
    return word >> UInt64(byte & 63) & 1 == 1
  }

  mutating func insert(_ byte: UInt8) {
    let bit: UInt64 = 1 << UInt64(byte & 63)
    switch byte >> 6 {
    case 0: word0 |= bit
    case 1: word1 |= bit
    case 2: word2 |= bit
    default: word3 |= bit
    }
  }

  func intersection(_ other: ByteSet) -> ByteSet {
    var set = self
    set.word0 &= other.word0
    set.word1 &= other.word1
    set.word2 &= other.word2
    set.word3 &= other.word3
    return set
  }

  /// The bytes permitted in a name that are not in this set.
  var inverted: ByteSet { ByteSet(Self.all.members.filter { !contains($0) }) }

  func isSuperset(of other: ByteSet) -> Bool { intersection(other) == other }

  var members: [UInt8] { (UInt8.min...UInt8.max).filter(contains) }

  /// A byte of the set, preferably a letter, or nil if the set is empty.
  var sample: UInt8? {
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    return letters.last(where: contains) ?? members.last
  }
}

extension ByteSet {
  /// Returns an ASCII letter in both cases, or nil for any other byte.
  static func bothCases(of byte: UInt8) -> ByteSet? {
    let lower = byte | 0x20
    guard UInt8(ascii: "a")...UInt8(ascii: "z") ~= lower else { return nil }
    return ByteSet([lower, lower & ~0x20])
  }

  /// The set with each ASCII letter in both cases.
  var ignoringCase: ByteSet {
    var set = self
    for byte in members {
      for other in Self.bothCases(of: byte)?.members ?? [] { set.insert(other) }
    }
    return set
  }
}
