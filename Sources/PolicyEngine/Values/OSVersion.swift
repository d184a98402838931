/// A dotted OS version, `5.0.1`; missing numbers count as 0.
public struct OSVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The numbers, without trailing zeros.
  let numbers: [UInt32]

  /// Parses dotted numbers, or returns nil for any other text.
  public init?(_ text: some StringProtocol) {
    var numbers: [UInt32] = []
    for part in text.split(separator: ".", omittingEmptySubsequences: false) {
      guard part.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
        let number = UInt32(part)
      else { return nil }
      numbers.append(number)
    }
    guard numbers.count <= 8 else { return nil }
    while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
    self.numbers = numbers
  }

  /// Orders by the numbers, lexicographically.
  public static func < (left: Self, right: Self) -> Bool {
    left.numbers.lexicographicallyPrecedes(right.numbers)
  }

  /// The version without trailing zeros.
  public var description: String { numbers.map(String.init).joined(separator: ".") }
}

extension OSVersion {
  /// The OS versions to which a rule or marker applies.
  public struct Range: Sendable, Hashable, CustomStringConvertible {
    /// The lower bound, or nil for none.
    let lower: Bound?
    /// The upper bound, or nil for none.
    let upper: Bound?
    /// The range as written.
    public let description: String

    struct Bound: Sendable, Hashable {
      let version: OSVersion
      let isIncluded: Bool
    }

    /// Every version.
    public static let all = Range(lower: nil, upper: nil, description: "all")

    private init(lower: Bound?, upper: Bound?, description: String) {
      self.lower = lower
      self.upper = upper
      self.description = description
    }

    /// Parses `>=5.1`, `>5`, `<6`, `<=6`, `5.0.1..<6`, `5...6` or one version, or returns nil for
    /// other text or an empty range.
    public init?(_ text: String) {
      let compact = String(text.filter { $0 != " " })
      guard let (lower, upper) = Self.bounds(compact[...]) else { return nil }
      if let low = lower, let high = upper {
        guard
          low.version < high.version
            || (low.version == high.version && low.isIncluded && high.isIncluded)
        else { return nil }
      }
      self.init(lower: lower, upper: upper, description: text)
    }

    private static func bounds(_ text: Substring) -> (Bound?, Bound?)? {
      for (mark, isIncluded) in [("..<", false), ("...", true)] {
        guard let (low, high) = split(text, at: mark) else { continue }
        guard let low = bound(low, true), let high = bound(high, isIncluded) else { return nil }
        return (low, high)
      }
      for (mark, isIncluded) in [(">=", true), (">", false)] where text.hasPrefix(mark) {
        return bound(text.dropFirst(mark.count), isIncluded).map { ($0, nil) }
      }
      for (mark, isIncluded) in [("<=", true), ("<", false)] where text.hasPrefix(mark) {
        return bound(text.dropFirst(mark.count), isIncluded).map { (nil, $0) }
      }
      return bound(text, true).map { ($0, $0) }
    }

    private static func bound(_ text: Substring, _ isIncluded: Bool) -> Bound? {
      OSVersion(text).map { Bound(version: $0, isIncluded: isIncluded) }
    }

    private static func split(_ text: Substring, at mark: String) -> (Substring, Substring)? {
      var start = text.startIndex
      while start < text.endIndex {
        if text[start...].hasPrefix(mark) {
          return (text[..<start], text[start...].dropFirst(mark.count))
        }
        start = text.index(after: start)
      }
      return nil
    }

    /// Whether the range contains a version; nil stands for the newest possible version.
    public func contains(_ version: OSVersion?) -> Bool {
      guard let version else { return upper == nil }
      if let lower, version < lower.version || (version == lower.version && !lower.isIncluded) {
        return false
      }
      if let upper, version > upper.version || (version == upper.version && !upper.isIncluded) {
        return false
      }
      return true
    }

    /// Whether the range contains every version of the other range.
    func covers(_ other: Range) -> Bool {
      let coversBelow =
        switch (lower, other.lower) {
        case (nil, _): true
        case (_, nil): false
        case (let mine?, let theirs?):
          mine.version < theirs.version
            || (mine.version == theirs.version && (mine.isIncluded || !theirs.isIncluded))
        }
      let coversAbove =
        switch (upper, other.upper) {
        case (nil, _): true
        case (_, nil): false
        case (let mine?, let theirs?):
          mine.version > theirs.version
            || (mine.version == theirs.version && (mine.isIncluded || !theirs.isIncluded))
        }
      return coversBelow && coversAbove
    }
  }
}
