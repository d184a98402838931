extension XMLPropertyListReader {
  /// Reads everything before `<plist>`: the declaration, comments, Apple's document type.
  mutating func prolog() throws(ModelError) {
    if has("<?xml") { try declaration() }
    try skipMiscellany()
    if has("<!DOCTYPE") {
      try documentType()
      try skipMiscellany()
    }
    if !has("<plist") { throw failure("this is neither an XML nor a binary property list") }
  }

  private mutating func declaration() throws(ModelError) {
    let start = at
    try skip(through: "?>", of: "the XML declaration")
    let text = String(decoding: bytes[start..<at], as: UTF8.self)
    guard let name = text.firstRange(of: "encoding") else { return }
    let rest = text[name.upperBound...].drop { $0 != "\"" && $0 != "'" }
    guard let quote = rest.first else { return }
    let encoding = rest.dropFirst().prefix { $0 != quote }.lowercased()
    guard ["utf-8", "utf8", "us-ascii", "utf-16"].contains(encoding) else {
      throw failure("its encoding '\(encoding)' is not supported, only UTF-8 and UTF-16", at: start)
    }
  }

  /// Skips `<!DOCTYPE plist PUBLIC "-//Apple…" "…">` and its old SYSTEM form. Refuses all others,
  /// in particular those with declarations.
  private mutating func documentType() throws(ModelError) {
    let start = at
    guard let end = bytes[at...].firstIndex(of: UInt8(ascii: ">")) else {
      throw failure("the document type is not terminated")
    }
    let text = String(decoding: bytes[start..<end], as: UTF8.self)
    let words = text.split { $0.isWhitespace }
    let isApples =
      words.count > 3 && words[1] == "plist" && !text.contains("[")
      && (words[2] == "PUBLIC" && words[3].hasPrefix("\"-//Apple")
        || words[2] == "SYSTEM" && words[3].contains("PropertyList"))
    guard isApples else {
      throw failure("its document type is not Apple's for property lists", at: start)
    }
    at = end + 1
  }

  /// Skips white space, comments and processing instructions.
  mutating func skipMiscellany() throws(ModelError) {
    while at < bytes.count {
      if Self.isSpace(bytes[at]) {
        at += 1
      } else if has("<!--") {
        try skip(through: "-->", of: "a comment")
      } else if has("<?") {
        try skip(through: "?>", of: "a processing instruction")
      } else {
        return
      }
    }
  }

  /// Reads `<name …>` or `<name …/>` and ignores attributes.
  mutating func openTag() throws(ModelError) -> (element: Element, isEmpty: Bool) {
    let start = at
    guard has("<") else {
      throw failure(at < bytes.count ? "expected an element, found text" : "unexpected end of file")
    }
    at += 1
    let element = try elementName(start)
    var quote: UInt8?
    while at < bytes.count {
      let byte = bytes[at]
      at += 1
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        return (element, bytes[at - 2] == UInt8(ascii: "/"))
      } else if byte == UInt8(ascii: "<") {
        break
      }
    }
    throw failure("the tag is not terminated", at: start)
  }

  /// Reads `</name>`.
  mutating func closeTag(_ element: Element) throws(ModelError) {
    let start = at
    guard has("</") else {
      throw failure(
        at < bytes.count
          ? "expected </\(element.rawValue)>" : "</\(element.rawValue)> is missing")
    }
    at += 2
    let found = try elementName(start)
    while at < bytes.count, Self.isSpace(bytes[at]) { at += 1 }
    guard found == element, has(">") else {
      throw failure("expected </\(element.rawValue)>", at: start)
    }
    at += 1
  }

  private mutating func elementName(_ start: Int) throws(ModelError) -> Element {
    let name = bytes[at...].prefix(16).prefix { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }
    at = name.endIndex
    let text = String(decoding: name, as: UTF8.self)
    let isWhole =
      at < bytes.count && (Self.isSpace(bytes[at]) || bytes[at] == 0x2f || bytes[at] == 0x3e)
    guard isWhole, let element = Element(rawValue: text) else {
      throw failure("unknown element", at: start)
    }
    return element
  }

  /// Whether the input continues with `text`.
  func has(_ text: StaticString) -> Bool {
    guard bytes.count - at >= text.utf8CodeUnitCount else { return false }
    return text.withUTF8Buffer { bytes[at..<(at + $0.count)].elementsEqual($0) }
  }

  mutating func skip(through end: StaticString, of what: String) throws(ModelError) {
    let start = at
    while at < bytes.count {
      if has(end) {
        at += end.utf8CodeUnitCount
        return
      }
      at += 1
    }
    throw failure("\(what) is not terminated", at: start)
  }

  package static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0a || byte == 0x09 || byte == 0x0d
  }
}
