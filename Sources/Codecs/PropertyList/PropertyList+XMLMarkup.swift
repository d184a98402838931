extension PropertyList.XMLReader {
  /// Reads everything before `<plist>`: the declaration, comments, Apple's document type.
  mutating func prolog() throws(CodecError) {
    if scanner.has("<?xml") { try declaration() }
    try skipMiscellany()
    if scanner.has("<!DOCTYPE") {
      try documentType()
      try skipMiscellany()
    }
    if !scanner.has("<plist") {
      throw scanner.failure("this is neither an XML nor a binary property list")
    }
  }

  private mutating func declaration() throws(CodecError) {
    let start = scanner.at
    try scanner.skip(through: "?>", of: "the XML declaration")
    let text = String(decoding: scanner.bytes[start..<scanner.at], as: UTF8.self)
    guard let name = text.firstRange(of: "encoding") else { return }
    let rest = text[name.upperBound...].drop { $0 != "\"" && $0 != "'" }
    guard let quote = rest.first else { return }
    let encoding = rest.dropFirst().prefix { $0 != quote }.lowercased()
    guard ["utf-8", "utf8", "us-ascii", "utf-16"].contains(encoding) else {
      throw scanner.failure(
        "its encoding '\(encoding)' is not supported, only UTF-8 and UTF-16", at: start)
    }
  }

  /// Skips `<!DOCTYPE plist PUBLIC "-//Apple…" "…">` and its old SYSTEM form. Refuses all others,
  /// in particular those with declarations.
  private mutating func documentType() throws(CodecError) {
    let start = scanner.at
    guard let end = scanner.bytes[scanner.at...].firstIndex(of: UInt8(ascii: ">")) else {
      throw scanner.failure("the document type is not terminated")
    }
    let text = String(decoding: scanner.bytes[start..<end], as: UTF8.self)
    let words = text.split { $0.isWhitespace }
    let isApples =
      words.count > 3 && words[1] == "plist" && !text.contains("[")
      && (words[2] == "PUBLIC" && words[3].hasPrefix("\"-//Apple")
        || words[2] == "SYSTEM" && words[3].contains("PropertyList"))
    guard isApples else {
      throw scanner.failure("its document type is not Apple's for property lists", at: start)
    }
    scanner.at = end + 1
  }

  /// Skips white space, comments and processing instructions.
  mutating func skipMiscellany() throws(CodecError) {
    while let byte = scanner.byte {
      if byte.isSpace {
        scanner.at += 1
      } else if scanner.has("<!--") {
        try scanner.skip(through: "-->", of: "a comment")
      } else if scanner.has("<?") {
        try scanner.skip(through: "?>", of: "a processing instruction")
      } else {
        return
      }
    }
  }

  /// Reads `<name …>` or `<name …/>` and ignores attributes.
  mutating func openTag() throws(CodecError) -> (element: Element, isEmpty: Bool) {
    let start = scanner.at
    guard scanner.has("<") else {
      throw scanner.failure(
        scanner.byte == nil ? "unexpected end of file" : "expected an element, found text")
    }
    scanner.at += 1
    let element = try elementName(start)
    return (element, try scanner.skipAttributes(ofTagAt: start))
  }

  /// Reads `</name>`.
  mutating func closeTag(_ element: Element) throws(CodecError) {
    let start = scanner.at
    guard scanner.has("</") else {
      throw scanner.failure(
        scanner.byte == nil
          ? "</\(element.rawValue)> is missing" : "expected </\(element.rawValue)>")
    }
    scanner.at += 2
    let found = try elementName(start)
    scanner.skipSpace()
    guard found == element, scanner.has(">") else {
      throw scanner.failure("expected </\(element.rawValue)>", at: start)
    }
    scanner.at += 1
  }

  private mutating func elementName(_ start: Int) throws(CodecError) -> Element {
    if let element = elementAtPosition() {
      scanner.at += element.rawValue.utf8.count
      if let byte = scanner.byte, byte.isSpace || byte == 0x2f || byte == 0x3e { return element }
    }
    throw scanner.failure("unknown element", at: start)
  }

  /// The element whose name the input continues with, or nil. Compared by letters: comparing with a
  /// text for each name would take half of the reading time.
  private func elementAtPosition() -> Element? {
    guard let byte = scanner.byte else { return nil }
    return switch byte {
    case UInt8(ascii: "k") where scanner.has("key"): .key
    case UInt8(ascii: "s") where scanner.has("string"): .string
    case UInt8(ascii: "d") where scanner.has("dict"): .dict
    case UInt8(ascii: "d") where scanner.has("data"): .data
    case UInt8(ascii: "d") where scanner.has("date"): .date
    case UInt8(ascii: "a") where scanner.has("array"): .array
    case UInt8(ascii: "i") where scanner.has("integer"): .integer
    case UInt8(ascii: "r") where scanner.has("real"): .real
    case UInt8(ascii: "t") where scanner.has("true"): .yes
    case UInt8(ascii: "f") where scanner.has("false"): .no
    case UInt8(ascii: "p") where scanner.has("plist"): .plist
    default: nil
    }
  }
}

extension PropertyList.XMLReader {
  /// Reads text, character data sections and entities up to and including the closing tag.
  mutating func text(of element: Element) throws(CodecError) -> [UInt8] {
    var text: [UInt8] = []
    while let byte = scanner.byte {
      if byte == UInt8(ascii: "<") {
        guard scanner.has("<![CDATA[") else { break }
        let range = try scanner.characterData()
        text.append(contentsOf: scanner.bytes[range])
      } else if byte == UInt8(ascii: "&") {
        text.append(contentsOf: String(try scanner.entity()).utf8)
      } else if byte == 0 {
        throw scanner.failure("the text contains a NUL byte")
      } else {
        let start = scanner.at
        while let byte = scanner.byte, Self.isPlain(byte) { scanner.at += 1 }
        text.append(contentsOf: scanner.bytes[start..<scanner.at])
      }
    }
    try closeTag(element)
    return text
  }

  /// Whether a byte of text stands for itself.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte != UInt8(ascii: "<") && byte != UInt8(ascii: "&") && byte != 0
  }

  /// Returns the document in UTF-8 without a byte order mark.
  static func utf8(_ bytes: [UInt8]) throws(CodecError) -> [UInt8] {
    if bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0xff, 0xfe]) {
      let high = bytes[0] == 0xfe ? 0 : 1
      let units = stride(from: 2, to: bytes.count - 1, by: 2).map {
        UInt16(bytes[$0 + high]) << 8 | UInt16(bytes[$0 + 1 - high])
      }
      guard bytes.count % 2 == 0, let text = String(validating: units, as: UTF16.self) else {
        throw CodecError(.malformed, in: .propertyList, reason: "it is not valid UTF-16")
      }
      return Array(text.utf8)
    }
    let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
    if let offset = InputText.firstInvalid(text.span) {
      throw CodecError(
        .malformed, in: .propertyList,
        reason: "this is neither UTF-8 text nor a binary property list", at: .offset(offset))
    }
    return text
  }
}
