extension PropertyList.XMLReader {
  /// Reads everything before `<plist>`: the declaration, comments, Apple's document type.
  mutating func prolog() throws(CodecError) {
    if has("<?xml") { try declaration() }
    try skipMiscellany()
    if has("<!DOCTYPE") {
      try documentType()
      try skipMiscellany()
    }
    if !has("<plist") { throw failure("this is neither an XML nor a binary property list") }
  }

  private mutating func declaration() throws(CodecError) {
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
  private mutating func documentType() throws(CodecError) {
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
  mutating func skipMiscellany() throws(CodecError) {
    while at < bytes.count {
      if bytes[at].isSpace {
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
  mutating func openTag() throws(CodecError) -> (element: Element, isEmpty: Bool) {
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
  mutating func closeTag(_ element: Element) throws(CodecError) {
    let start = at
    guard has("</") else {
      throw failure(
        at < bytes.count
          ? "expected </\(element.rawValue)>" : "</\(element.rawValue)> is missing")
    }
    at += 2
    let found = try elementName(start)
    while at < bytes.count, bytes[at].isSpace { at += 1 }
    guard found == element, has(">") else {
      throw failure("expected </\(element.rawValue)>", at: start)
    }
    at += 1
  }

  private mutating func elementName(_ start: Int) throws(CodecError) -> Element {
    guard let element = elementAtPosition() else { throw failure("unknown element", at: start) }
    at += element.rawValue.utf8.count
    let isWhole =
      at < bytes.count && (bytes[at].isSpace || bytes[at] == 0x2f || bytes[at] == 0x3e)
    guard isWhole else { throw failure("unknown element", at: start) }
    return element
  }

  /// The element whose name the input continues with, or nil. By letters: texts for each name would
  /// take half of the time of reading.
  private func elementAtPosition() -> Element? {
    guard at < bytes.count else { return nil }
    return switch bytes[at] {
    case UInt8(ascii: "k") where has("key"): .key
    case UInt8(ascii: "s") where has("string"): .string
    case UInt8(ascii: "d") where has("dict"): .dict
    case UInt8(ascii: "d") where has("data"): .data
    case UInt8(ascii: "d") where has("date"): .date
    case UInt8(ascii: "a") where has("array"): .array
    case UInt8(ascii: "i") where has("integer"): .integer
    case UInt8(ascii: "r") where has("real"): .real
    case UInt8(ascii: "t") where has("true"): .yes
    case UInt8(ascii: "f") where has("false"): .no
    case UInt8(ascii: "p") where has("plist"): .plist
    default: nil
    }
  }

  /// Whether the input continues with `text`. Most texts differ in the first bytes.
  func has(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard bytes.count - at >= count else { return false }
    return text.withUTF8Buffer { letters in
      var index = 0
      while index < count, unsafe bytes[at + index] == letters[index] { index += 1 }
      return index == count
    }
  }

  mutating func skip(through end: StaticString, of what: String) throws(CodecError) {
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
}

extension PropertyList.XMLReader {
  /// Reads text, character data sections and entities up to and including the closing tag.
  mutating func text(of element: Element) throws(CodecError) -> [UInt8] {
    var text: [UInt8] = []
    while at < bytes.count {
      let byte = bytes[at]
      if byte == UInt8(ascii: "<") {
        guard has("<![CDATA[") else { break }
        try characterData(into: &text)
      } else if byte == UInt8(ascii: "&") {
        try entity(into: &text)
      } else if byte == 0 {
        throw failure("the text contains a NUL byte")
      } else {
        let start = at
        while at < bytes.count, Self.isPlain(bytes[at]) { at += 1 }
        text.append(contentsOf: bytes[start..<at])
      }
    }
    try closeTag(element)
    return text
  }

  /// Whether a byte of text stands for itself.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte != UInt8(ascii: "<") && byte != UInt8(ascii: "&") && byte != 0
  }

  private mutating func characterData(into text: inout [UInt8]) throws(CodecError) {
    let start = at + 9
    try skip(through: "]]>", of: "a CDATA section")
    text.append(contentsOf: bytes[start..<(at - 3)])
  }

  private mutating func entity(into text: inout [UInt8]) throws(CodecError) {
    let start = at
    let body = bytes[(at + 1)...].prefix(12).prefix { $0 != UInt8(ascii: ";") }
    guard body.endIndex < bytes.count, bytes[body.endIndex] == UInt8(ascii: ";") else {
      throw failure("'&' does not begin an entity", at: start)
    }
    at = body.endIndex + 1
    let name = String(decoding: body, as: UTF8.self)
    guard let scalar = XMLElement.scalar(named: name) else {
      throw failure("unknown entity '\(name)'", at: start)
    }
    text.append(contentsOf: String(scalar).utf8)
  }

  /// Returns an error at the current or another position, with line and column.
  func failure(
    _ reason: String, at offset: Int? = nil, kind: CodecError.Kind = .malformed
  ) -> CodecError {
    CodecError(
      kind, in: .propertyList, reason: reason, at: .mark(Mark(of: offset ?? at, in: bytes.span)))
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
