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
}
