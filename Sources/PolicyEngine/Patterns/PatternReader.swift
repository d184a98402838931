/// Parses the text of a pattern, component by component.
struct PatternReader {
  private let bytes: [UInt8]
  private var position = 0
  private var codes: [UInt16] = []
  private var sets: [ByteSet] = []
  /// The prefixes of the current component's alternatives, without `codes`.
  private var prefixes: [[UInt16]] = [[]]

  /// The maximum number of alternatives that `{a,b}` may produce in one component.
  static let maximumAlternatives = 256

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Skips a slash; returns false at the end of the pattern.
  mutating func skipSlash() -> Bool {
    guard position < bytes.count else { return false }
    position += 1
    return true
  }

  /// Reads up to the next slash or the end. Returns the alternatives, or nil for `**`.
  mutating func component() throws(Pattern.SyntaxError) -> [Glob]? {
    let start = position
    let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.count
    let written = bytes[start..<end]
    try refuse(written, at: start)
    if written.elementsEqual("**".utf8) {
      position = end
      return nil
    }
    (codes, sets, prefixes) = ([], [], [[]])
    while position < bytes.count, bytes[position] != UInt8(ascii: "/") { try element() }
    let all = prefixes.map { $0 + codes }
    guard all.allSatisfy({ !$0.isEmpty }) else {
      throw error("an alternative makes the component empty", "a name", at: start)
    }
    return all.map { Glob(codes: $0, sets: sets) }
  }

  private func refuse(_ written: ArraySlice<UInt8>, at start: Int) throws(Pattern.SyntaxError) {
    if written.isEmpty {
      if start == 0 {
        throw error(
          "the pattern begins with a slash", "a path relative to the container's root", at: 0)
      }
      if start == bytes.count {
        throw error("the pattern ends with a slash", "`/**` for everything below", at: start - 1)
      }
      throw error("a component is empty", "one slash", at: start)
    }
    if written.elementsEqual(".".utf8) || written.elementsEqual("..".utf8) {
      throw error(
        "`\(String(decoding: written, as: UTF8.self))` as a component", "a path without it",
        at: start)
    }
  }

  private mutating func element() throws(Pattern.SyntaxError) {
    let byte = bytes[position]
    switch byte {
    case UInt8(ascii: "*"): try star()
    case UInt8(ascii: "?"): append(Glob.any)
    case UInt8(ascii: "["): try set()
    case UInt8(ascii: "{"): try braces()
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      let character = Character(Unicode.Scalar(byte))
      throw error("unmatched `\(character)`", "`\\\(character)` for the character", at: position)
    default: append(UInt16(try literal()))
    }
  }

  private mutating func append(_ code: UInt16) {
    codes.append(code)
    if code >= Glob.any { position += 1 }
  }

  private mutating func star() throws(Pattern.SyntaxError) {
    if position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "*") {
      throw error("`**` next to other characters", "`**` as a whole component", at: position)
    }
    append(Glob.star)
  }

  /// Reads a literal byte, optionally escaped with a backslash.
  private mutating func literal() throws(Pattern.SyntaxError) -> UInt8 {
    if bytes[position] == UInt8(ascii: "\\") {
      position += 1
      guard position < bytes.count else {
        throw error("a backslash at the end", "`\\\\` for a backslash", at: position - 1)
      }
      if bytes[position] == UInt8(ascii: "/") {
        throw error("a slash after a backslash", "a component without a slash", at: position - 1)
      }
    }
    guard bytes[position] != 0 else { throw error("a NUL", "a character of a name", at: position) }
    defer { position += 1 }
    return bytes[position]
  }

  private mutating func set() throws(Pattern.SyntaxError) {
    let start = position
    position += 1
    let isInverted = position < bytes.count && bytes[position] == UInt8(ascii: "!")
    if isInverted { position += 1 }
    var set = ByteSet()
    var isEmpty = true
    while true {
      guard position < bytes.count, bytes[position] != UInt8(ascii: "/") else {
        throw error("`[` without `]`", "`]`, or `\\[` for the character", at: start)
      }
      if bytes[position] == UInt8(ascii: "]") { break }
      for byte in try range() { set.insert(byte) }
      isEmpty = false
    }
    guard !isEmpty else { throw error("an empty set", "characters in `[]`", at: start) }
    sets.append(isInverted ? set.inverted : set)
    append(Glob.firstSet + UInt16(sets.count - 1))
  }

  private mutating func range() throws(Pattern.SyntaxError) -> ClosedRange<UInt8> {
    let start = position
    let low = try member()
    guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "-"),
      bytes[position + 1] != UInt8(ascii: "]")
    else { return low...low }
    position += 1
    let high = try member()
    guard low <= high else { throw error("a descending range", "`a-z`", at: start) }
    return low...high
  }

  private mutating func member() throws(Pattern.SyntaxError) -> UInt8 {
    let start = position
    let byte = try literal()
    guard byte < 0x80 else {
      throw error("a non-ASCII letter in a set", "`{é,è}`: a set holds bytes", at: start)
    }
    return byte
  }

  private mutating func braces() throws(Pattern.SyntaxError) {
    let start = position
    let outer = codes
    var alternatives: [[UInt16]] = []
    position += 1
    codes = []
    while true {
      guard position < bytes.count, bytes[position] != UInt8(ascii: "/") else {
        throw error(
          "`{` without `}` in the same component", "`}`, or `\\{` for the character", at: start)
      }
      let byte = bytes[position]
      if byte == UInt8(ascii: "{") {
        throw error("`{` within `{}`", "alternatives that are not nested", at: position)
      }
      if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") {
        alternatives.append(codes)
        codes = []
        position += 1
        if byte == UInt8(ascii: "}") { break }
      } else {
        try element()
      }
    }
    try multiply(outer, by: alternatives, at: start)
  }

  private mutating func multiply(
    _ outer: [UInt16], by alternatives: [[UInt16]], at start: Int
  ) throws(Pattern.SyntaxError) {
    guard prefixes.count * alternatives.count <= Self.maximumAlternatives else {
      throw error(
        "more than \(Self.maximumAlternatives) alternatives in one component", "several rules",
        at: start)
    }
    prefixes = prefixes.flatMap { prefix in alternatives.map { prefix + outer + $0 } }
    codes = []
  }

  private func error(_ problem: String, _ expected: String, at position: Int) -> Pattern.SyntaxError
  {
    let offset = bytes[..<position].count { $0 & 0xC0 != 0x80 }
    return Pattern.SyntaxError(offset: offset, problem: problem, expected: expected)
  }
}

extension Pattern {
  /// The reason why a text is not a valid pattern.
  public struct SyntaxError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The number of Unicode scalars before the error.
    public let offset: Int
    /// The problem.
    public let problem: String
    /// The expected text.
    public let expected: String

    /// The problem and the expected text.
    public var description: String { "\(problem); expected \(expected)" }
  }
}
