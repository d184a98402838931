extension JSONReader {
  /// Reads a quoted string.
  mutating func string() throws(CodecError) -> String {
    let start = position
    position += 1
    var bytes: [UInt8] = []
    var run = position
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        if !isSkipping { bytes.append(contentsOf: text[run..<position]) }
        position += 1
        return String(decoding: bytes, as: UTF8.self)
      case UInt8(ascii: "\\"):
        bytes.append(contentsOf: text[run..<position])
        try escape(to: &bytes)
        run = position
      case 0..<0x20: throw failure("a control character in a string must be escaped")
      default: position += 1
      }
    }
    throw CodecError(
      .truncated, in: .json, reason: "the string is not terminated",
      at: .mark(Mark(of: start, in: text.span)))
  }

  private mutating func escape(to bytes: inout [UInt8]) throws(CodecError) {
    let start = position
    position += 1
    guard let letter = next else { throw failure("the string is not terminated") }
    position += 1
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(letter)
    case UInt8(ascii: "b"): bytes.append(0x08)
    case UInt8(ascii: "f"): bytes.append(0x0C)
    case UInt8(ascii: "n"): bytes.append(0x0A)
    case UInt8(ascii: "r"): bytes.append(0x0D)
    case UInt8(ascii: "t"): bytes.append(0x09)
    case UInt8(ascii: "u"): bytes.append(contentsOf: Array(String(try unicode(start)).utf8))
    default: throw failure("an unknown escape in a string", at: start)
    }
  }

  private mutating func unicode(_ start: Int) throws(CodecError) -> Unicode.Scalar {
    let first = try fourDigits()
    var value = UInt32(first)
    if UTF16.isLeadSurrogate(first), take("\\"), take("u") {
      let second = try fourDigits()
      guard UTF16.isTrailSurrogate(second) else { throw failure("a lone surrogate", at: start) }
      value = 0x10000 + (UInt32(first) & 0x3FF) << 10 + UInt32(second) & 0x3FF
    }
    guard let scalar = Unicode.Scalar(value) else { throw failure("a lone surrogate", at: start) }
    return scalar
  }

  private mutating func fourDigits() throws(CodecError) -> UInt16 {
    var value: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Self.hexDigit(byte) else {
        throw failure("four hexadecimal digits are expected")
      }
      value = value << 4 | digit
      position += 1
    }
    return value
  }

  private static func hexDigit(_ byte: UInt8) -> UInt16? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
    default: nil
    }
  }

  /// Reads a number: an integer if it has neither fraction nor exponent.
  mutating func number() throws(CodecError) -> JSON {
    guard isDigit || next == UInt8(ascii: "-") else { throw failure("a value is expected") }
    let start = position
    _ = take("-")
    if !take("0") { try digits() } else if isDigit { throw failure("a number has a leading zero") }
    var isInteger = true
    if take(".") {
      isInteger = false
      try digits()
    }
    if take("e") || take("E") {
      isInteger = false
      if !take("+") { _ = take("-") }
      try digits()
    }
    return try number(
      String(decoding: text[start..<position], as: UTF8.self), isInteger: isInteger, at: start)
  }

  private func number(
    _ text: String, isInteger: Bool, at start: Int
  ) throws(CodecError) -> JSON {
    if isInteger, text != "-0" {
      if let value = Int64(text) { return .integer(value) }
      throw failure("an integer exceeds 64 bits", .unsupported, at: start)
    }
    guard let value = Double(text), value.isFinite else {
      throw failure("a number exceeds the range of a double", .unsupported, at: start)
    }
    return .double(value)
  }

  private var isDigit: Bool {
    if let byte = next { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte } else { false }
  }

  private mutating func digits() throws(CodecError) {
    guard isDigit else { throw failure("a digit is expected") }
    while isDigit { position += 1 }
  }
}
