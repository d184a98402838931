internal import Codecs
internal import SystemIO

/// Replaces strings at known keys of a JSON text. All other bytes of the text remain, so numbers,
/// spaces and the order of members are as the app wrote them. Strings at other keys that point to
/// an old place are reported.
struct JSONPathEditor {
  private let text: [UInt8]
  private let keys: [[String?]]
  private var findings: RewritingFindings
  private var position = 0
  private var output: [UInt8] = []
  /// The start of the bytes that are not in `output` yet.
  private var copied = 0
  /// The keys above the current value.
  private var trail: [Key] = []

  /// A key or an index of the text.
  private enum Key {
    /// The range of the key with its quotes.
    case member(Range<Int>)
    case element(Int)
  }

  /// Creates an editor of a text, which is validated first, with bounds.
  init(_ text: [UInt8], keys: [[String?]], _ mapping: PathMapping) throws(RewriteRefusal) {
    do throws(CodecError) {
      _ = try JSON(
        parsing: text, limits: JSON.Limits(bytes: text.count, depth: 64, values: 1 << 20),
        keeping: [])
    } catch {
      throw RewriteRefusal(reason: ByteString(error.reason).description)
    }
    self.text = text
    self.keys = keys
    findings = RewritingFindings(mapping)
  }

  /// Returns the new content.
  consuming func rewriting() throws(RewriteRefusal) -> Rewriting {
    value(at: [], keys.indices.map { $0 })
    output += text[copied...]
    return Rewriting(
      bytes: output, changes: findings.changes, outside: findings.outside,
      left: findings.left)
  }

  /// Reads a value.
  ///
  /// - Parameters:
  ///   - path: The keys above it.
  ///   - candidates: The indexes of the keys that can still match.
  private mutating func value(at path: [String], _ candidates: [Int]) {
    skipSpace()
    switch text[position] {
    case UInt8(ascii: "{"): members(at: path, candidates)
    case UInt8(ascii: "["): elements(at: path, candidates)
    case UInt8(ascii: "\""): string(at: path, candidates)
    default:
      while position < text.count, !Self.isEnd(text[position]) { position += 1 }
    }
  }

  private mutating func members(at path: [String], _ candidates: [Int]) {
    position += 1
    skipSpace()
    while text[position] != UInt8(ascii: "}") {
      let range = stringRange()
      let name = candidates.isEmpty ? "" : Self.decoded(text[range]) ?? ""
      skipSpace()
      position += 1  // The colon.
      child(name, as: .member(range), at: path, candidates)
    }
    position += 1
  }

  private mutating func elements(at path: [String], _ candidates: [Int]) {
    position += 1
    skipSpace()
    var index = 0
    while text[position] != UInt8(ascii: "]") {
      child(
        candidates.isEmpty ? "" : String(index), as: .element(index), at: path, candidates)
      index += 1
    }
    position += 1
  }

  /// Reads a member or an element and the comma after it. Its path is needed only while a key can
  /// match.
  private mutating func child(
    _ name: String, as key: Key, at path: [String], _ candidates: [Int]
  ) {
    let next = matching(candidates, name, depth: path.count)
    trail.append(key)
    value(at: next.isEmpty ? [] : path + [name], next)
    trail.removeLast()
    skipSpace()
    if text[position] == UInt8(ascii: ",") { position += 1 }
    skipSpace()
  }

  private mutating func string(at path: [String], _ candidates: [Int]) {
    let range = stringRange()
    guard candidates.contains(where: { keys[$0].count == path.count }) else {
      return inspect(text[range])
    }
    guard let value = Self.decoded(text[range]),
      let new = findings.replacement(of: value, at: path.joined(separator: "."))
    else { return }
    output += text[copied..<range.lowerBound]
    output += JSON.string(new).compactBytes
    copied = range.upperBound
  }

  /// Reports a string at an unknown key if it points to an old place: a path or a URL of a file.
  /// Other strings, which are most of the text, are not decoded.
  private mutating func inspect(_ literal: ArraySlice<UInt8>) {
    guard let first = literal.dropFirst().first, "/\\fj".utf8.contains(first),
      let value = Self.decoded(literal), findings.pointsToOldPlace(value)
    else { return }
    findings.keepOld(value, at: trailText)
  }

  /// The keys above the current value as text.
  private var trailText: String {
    trail.map { key in
      switch key {
      case .member(let range): Self.decoded(text[range]) ?? ""
      case .element(let index): String(index)
      }
    }.joined(separator: ".")
  }

  /// Returns the candidates whose key at a depth is the name or any.
  private func matching(_ candidates: [Int], _ name: String, depth: Int) -> [Int] {
    candidates.filter { index in
      guard keys[index].count > depth else { return false }
      return keys[index][depth].map { $0.utf8.elementsEqual(name.utf8) } ?? true
    }
  }

  /// Returns the range of the string at the current position, with its quotes, and moves past it.
  private mutating func stringRange() -> Range<Int> {
    let start = position
    position += 1
    while text[position] != UInt8(ascii: "\"") {
      position += text[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    position += 1
    return start..<position
  }

  private mutating func skipSpace() {
    while position < text.count, Self.isSpace(text[position]) { position += 1 }
  }

  private static func decoded(_ literal: ArraySlice<UInt8>) -> String? {
    (try? JSON(parsing: Array(literal)))?.string
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  private static func isEnd(_ byte: UInt8) -> Bool {
    isSpace(byte) || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}")
      || byte == UInt8(ascii: "]")
  }
}
