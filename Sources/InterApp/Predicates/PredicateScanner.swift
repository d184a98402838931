internal import SystemIO

/// Splits a predicate's text into tokens.
struct PredicateScanner {
  private let text: [UInt8]
  private var position = 0

  init(_ text: [UInt8]) { self.text = text }

  /// Returns the next token.
  mutating func next() throws(PredicateFault) -> PredicateToken {
    while let byte, Self.isBlank(byte) { position += 1 }
    let start = position
    let kind = try kind()
    return PredicateToken(kind: kind, start: start, end: position)
  }

  private var byte: UInt8? { position < text.count ? text[position] : nil }

  private func byte(after count: Int) -> UInt8? {
    position + count < text.count ? text[position + count] : nil
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
  }

  private mutating func kind() throws(PredicateFault) -> PredicateToken.Kind {
    guard let byte else { return .end }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return .text(try quoted(byte))
    case UInt8(ascii: "$"): return .variable(try name(after: 1, "a variable"))
    case UInt8(ascii: "@"): return .function(try name(after: 1, "a function"))
    case UInt8(ascii: "#"): return .name(try name(after: 1, "a key"))
    case _ where byte.isASCIIDigit: return .number(try number())
    case _ where byte.isASCIILetter || byte == UInt8(ascii: "_"):
      let name = word()
      return PredicateToken.Word(named: name).map { .word($0) } ?? .name(name)
    default: return try sign(byte)
    }
  }

  // MARK: - Words

  private mutating func name(after count: Int, _ noun: String) throws(PredicateFault) -> String {
    let start = position
    position += count
    guard let byte, byte.isASCIILetter || byte == UInt8(ascii: "_") else {
      throw PredicateFault(
        "a name of \(noun) is expected after '\(ByteString([text[start]]))'", at: start, in: text)
    }
    return plainWord()
  }

  private mutating func plainWord() -> String {
    let start = position
    while let byte, byte.isASCIIAlphanumeric || byte == UInt8(ascii: "_") { position += 1 }
    return String(decoding: text[start..<position], as: UTF8.self)
  }

  /// Returns a name, or one of the two reserved words with hyphens.
  private mutating func word() -> String {
    for word in [PredicateToken.Word.conformsTo, .equalsType] {
      let bytes = Array(word.rawValue.utf8)
      let end = position + bytes.count
      guard end <= text.count, text[position..<end].map(\.upperCased) == bytes else { continue }
      if end < text.count, text[end].isASCIIAlphanumeric || text[end] == UInt8(ascii: "_") {
        continue
      }
      position = end
      return word.rawValue
    }
    return plainWord()
  }

  // MARK: - Literals

  private mutating func quoted(_ quote: UInt8) throws(PredicateFault) -> String {
    let start = position
    position += 1
    var bytes: [UInt8] = []
    while let byte {
      position += 1
      if byte == quote { return String(decoding: bytes, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      guard let escaped = self.byte else { break }
      bytes.append(try escape(escaped))
      position += 1
    }
    throw PredicateFault("the text in quotation marks has no end", at: start, in: text)
  }

  private func escape(_ byte: UInt8) throws(PredicateFault) -> UInt8 {
    switch byte {
    case UInt8(ascii: "n"): return 0x0a
    case UInt8(ascii: "t"): return 0x09
    case UInt8(ascii: "r"): return 0x0d
    case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"): return byte
    default:
      throw PredicateFault(
        "the escape '\\\(ByteString([byte]))' is unknown", at: position - 1, in: text)
    }
  }

  private mutating func number() throws(PredicateFault) -> Double {
    let start = position
    while let byte, byte.isASCIIDigit { position += 1 }
    if byte == UInt8(ascii: "."), self.byte(after: 1)?.isASCIIDigit == true {
      position += 1
      while let byte, byte.isASCIIDigit { position += 1 }
    }
    let digits = String(decoding: text[start..<position], as: UTF8.self)
    let continues = byte.map { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "_") } ?? false
    guard !continues, digits.utf8.count <= 15, let number = Double(digits) else {
      throw PredicateFault("a decimal number of at most 15 digits is expected", at: start, in: text)
    }
    return number
  }

  // MARK: - Signs

  private mutating func sign(_ byte: UInt8) throws(PredicateFault) -> PredicateToken.Kind {
    if let (kind, length) = comparison(byte) {
      position += length
      return kind
    }
    if "(){}[],.+-*/".utf8.contains(byte) {
      position += 1
      return .mark(byte)
    }
    if byte == UInt8(ascii: "%") {
      throw PredicateFault(
        "'%' stands for an argument of a format, and a rule has none", at: position, in: text)
    }
    throw PredicateFault(
      "'\(ByteString([byte]))' does not begin a word of a predicate", at: position, in: text)
  }

  private func comparison(_ byte: UInt8) -> (PredicateToken.Kind, length: Int)? {
    let second = self.byte(after: 1)
    switch (byte, second) {
    case (UInt8(ascii: "="), UInt8(ascii: "=")): return (.sign(.equal), 2)
    case (UInt8(ascii: "!"), UInt8(ascii: "=")), (UInt8(ascii: "<"), UInt8(ascii: ">")):
      return (.sign(.unequal), 2)
    case (UInt8(ascii: ">"), UInt8(ascii: "=")), (UInt8(ascii: "="), UInt8(ascii: ">")):
      return (.sign(.atLeast), 2)
    case (UInt8(ascii: "<"), UInt8(ascii: "=")), (UInt8(ascii: "="), UInt8(ascii: "<")):
      return (.sign(.atMost), 2)
    case (UInt8(ascii: "&"), UInt8(ascii: "&")): return (.word(.and), 2)
    case (UInt8(ascii: "|"), UInt8(ascii: "|")): return (.word(.or), 2)
    case (UInt8(ascii: "="), _): return (.sign(.equal), 1)
    case (UInt8(ascii: ">"), _): return (.sign(.greater), 1)
    case (UInt8(ascii: "<"), _): return (.sign(.less), 1)
    case (UInt8(ascii: "!"), _): return (.word(.not), 1)
    default: return nil
    }
  }
}

extension UInt8 {
  /// The byte with an ASCII letter in upper case.
  fileprivate var upperCased: UInt8 { (0x61...0x7a).contains(self) ? self & 0xdf : self }
}
