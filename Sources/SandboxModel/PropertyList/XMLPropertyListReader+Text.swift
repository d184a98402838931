internal import SystemIO

extension XMLPropertyListReader {
  /// Reads text, character data sections and entities up to and including the closing tag.
  mutating func text(of element: Element) throws(ModelError) -> [UInt8] {
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
        text.append(byte)
        at += 1
      }
    }
    try closeTag(element)
    return text
  }

  private mutating func characterData(into text: inout [UInt8]) throws(ModelError) {
    let start = at + 9
    try skip(through: "]]>", of: "a CDATA section")
    text.append(contentsOf: bytes[start..<(at - 3)])
  }

  private mutating func entity(into text: inout [UInt8]) throws(ModelError) {
    let start = at
    let body = bytes[(at + 1)...].prefix(12).prefix { $0 != UInt8(ascii: ";") }
    guard body.endIndex < bytes.count, bytes[body.endIndex] == UInt8(ascii: ";") else {
      throw failure("'&' does not begin an entity", at: start)
    }
    at = body.endIndex + 1
    let name = String(decoding: body, as: UTF8.self)
    guard let scalar = Self.scalar(named: name) else {
      throw failure("unknown entity '\(ByteString(name))'", at: start)
    }
    text.append(contentsOf: String(scalar).utf8)
  }

  private static func scalar(named name: String) -> Unicode.Scalar? {
    switch name {
    case "lt": return "<"
    case "gt": return ">"
    case "amp": return "&"
    case "quot": return "\""
    case "apos": return "'"
    default: break
    }
    guard name.hasPrefix("#") else { return nil }
    let isHex = name.hasPrefix("#x")
    let digits = name.dropFirst(isHex ? 2 : 1)
    guard digits.utf8.first != UInt8(ascii: "+"),
      let value = UInt32(digits, radix: isHex ? 16 : 10), value != 0
    else { return nil }
    return Unicode.Scalar(value)
  }

  /// Returns an error at the current or another position, with line and column.
  func failure(
    _ reason: String, at place: Int? = nil, code: ModelError.Code = .propertyList
  ) -> ModelError {
    var (line, column) = (1, 1)
    for byte in bytes.prefix(place ?? at) {
      if byte == 0x0a {
        (line, column) = (line + 1, 1)
      } else if byte & 0xc0 != 0x80 {
        column += 1
      }
    }
    return ModelError(code, PropertyList.reading, at: .line(line, column: column), reason: reason)
  }

  /// Returns the document in UTF-8 without a byte order mark.
  static func utf8(_ bytes: [UInt8]) throws(ModelError) -> [UInt8] {
    if bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0xff, 0xfe]) {
      let high = bytes[0] == 0xfe ? 0 : 1
      let units = stride(from: 2, to: bytes.count - 1, by: 2).map {
        UInt16(bytes[$0 + high]) << 8 | UInt16(bytes[$0 + 1 - high])
      }
      guard bytes.count % 2 == 0, let text = String(validating: units, as: UTF16.self) else {
        throw ModelError(.propertyList, PropertyList.reading, reason: "it is not valid UTF-16")
      }
      return Array(text.utf8)
    }
    let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
    do {
      _ = try UTF8Span(validating: text.span)
    } catch {
      let offset = error.byteOffsets.lowerBound
      throw ModelError(
        .propertyList, PropertyList.reading, at: .offset(offset),
        reason: "this is neither UTF-8 text nor a binary property list")
    }
    return text
  }
}
