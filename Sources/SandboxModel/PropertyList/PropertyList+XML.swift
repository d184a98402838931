internal import Codecs
internal import SystemIO

extension PropertyList {
  /// Returns the value as an XML property list, indented with tabs; equal values produce equal
  /// bytes.
  ///
  /// - Throws: `propertyList` for values that XML cannot represent: control characters, bytes that
  ///   are not UTF-8, a date outside the years 0 to 9999. `limit` for a value nested deeper than 64
  ///   levels, the reader's limit.
  package func xml() throws(ModelError) -> [UInt8] {
    var writer = XMLPropertyListWriter()
    try writer.add(self, depth: 0)
    let head = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """
    return Array(head.utf8) + writer.output + Array("</plist>\n".utf8)
  }

  static let writing = "write the property list"

  static func checkDepth(_ depth: Int) throws(ModelError) {
    let limit = Limits().depth
    if depth >= limit {
      throw ModelError(.limit, writing, reason: "it is nested more than \(limit) levels deep")
    }
  }
}

/// Writes the elements of an XML property list.
private struct XMLPropertyListWriter {
  var output: [UInt8] = []
  private static let dataColumns = 76

  mutating func add(_ value: PropertyList, depth: Int) throws(ModelError) {
    switch value {
    case .string(let text): try element("string", text: try escaped(text), depth: depth)
    case .integer(let number): line("<integer>\(number)</integer>", depth)
    case .unsigned(let number): line("<integer>\(number)</integer>", depth)
    case .real(let number): line("<real>\(number)</real>", depth)
    case .bool(let flag): line(flag ? "<true/>" : "<false/>", depth)
    case .date(let seconds): try date(seconds, depth)
    case .data(let bytes): data(bytes, depth)
    case .array(let elements): try array(elements, depth)
    case .dictionary(let members): try dictionary(members, depth)
    case .uid(let number):
      let key = PropertyList.Member("CF$UID", .integer(Int64(clamping: number)))
      try dictionary([key], depth)
    }
  }

  private mutating func line(_ text: String, _ depth: Int) {
    output.append(contentsOf: repeatElement(UInt8(ascii: "\t"), count: depth))
    output.append(contentsOf: text.utf8)
    output.append(UInt8(ascii: "\n"))
  }

  private mutating func element(_ name: String, text: String, depth: Int) throws(ModelError) {
    line("<\(name)>\(text)</\(name)>", depth)
  }

  private mutating func array(_ elements: [PropertyList], _ depth: Int) throws(ModelError) {
    try PropertyList.checkDepth(depth)
    if elements.isEmpty { return line("<array/>", depth) }
    line("<array>", depth)
    for element in elements { try add(element, depth: depth + 1) }
    line("</array>", depth)
  }

  private mutating func dictionary(
    _ members: [PropertyList.Member], _ depth: Int
  ) throws(ModelError) {
    try PropertyList.checkDepth(depth)
    if members.isEmpty { return line("<dict/>", depth) }
    line("<dict>", depth)
    for member in members {
      try element("key", text: try escaped(member.key), depth: depth + 1)
      try add(member.value, depth: depth + 1)
    }
    line("</dict>", depth)
  }

  private mutating func date(_ seconds: Double, _ depth: Int) throws(ModelError) {
    guard let text = PropertyListDate.text(of: seconds) else {
      throw ModelError(
        .propertyList, PropertyList.writing, reason: "a date outside the years 0 to 9999")
    }
    line("<date>\(text)</date>", depth)
  }

  private mutating func data(_ bytes: [UInt8], _ depth: Int) {
    line("<data>", depth)
    var rest = bytes[...]
    while !rest.isEmpty {
      line(Base64.encode(rest.prefix(Self.dataColumns / 4 * 3)), depth)
      rest = rest.dropFirst(Self.dataColumns / 4 * 3)
    }
    line("</data>", depth)
  }

  private func escaped(_ text: ByteString) throws(ModelError) -> String {
    guard let string = text.utf8 else {
      throw ModelError(.propertyList, PropertyList.writing, reason: "'\(text)' is not UTF-8")
    }
    var result = ""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\r": result += "&#13;"
      case "\t", "\n": result.unicodeScalars.append(scalar)
      case _ where scalar.value < 0x20:
        throw ModelError(
          .propertyList, PropertyList.writing,
          reason: "'\(text)' has a control character, which XML cannot represent")
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
