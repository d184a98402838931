extension PropertyList {
  /// Reads an XML property list. Supports only Apple's document type and XML's own entities.
  struct XMLReader {
    var scanner: XMLScanner
    let limits: PropertyList.Limits
    var objects = 0

    /// The elements of a property list.
    enum Element: String {
      case plist, dict, array, key, string, integer, real, date, data
      case yes = "true"
      case no = "false"
    }

    init(_ bytes: [UInt8], limits: PropertyList.Limits) throws(CodecError) {
      scanner = XMLScanner(text: try Self.utf8(bytes), in: .propertyList)
      self.limits = limits
    }

    /// Reads the prolog and the value up to the end of the document.
    mutating func document() throws(CodecError) -> PropertyList {
      try prolog()
      guard try openTag() == (.plist, false) else {
        throw scanner.failure("the first element is not <plist>", at: 0)
      }
      try skipMiscellany()
      let value = try value(depth: 0)
      try skipMiscellany()
      try closeTag(.plist)
      try skipMiscellany()
      if scanner.byte != nil { throw scanner.failure("unexpected content after </plist>") }
      return value
    }

    /// Reads the element at the current position.
    mutating func value(depth: Int) throws(CodecError) -> PropertyList {
      let start = scanner.at
      try count(start)
      let (element, isEmpty) = try openTag()
      switch element {
      case .dict: return try dictionary(isEmpty: isEmpty, depth: try deeper(depth, start))
      case .array: return try array(isEmpty: isEmpty, depth: try deeper(depth, start))
      case .plist, .key:
        throw scanner.failure("expected a value, found <\(element.rawValue)>", at: start)
      case .yes, .no:
        if !isEmpty { try closeTag(element) }
        return .bool(element == .yes)
      case .string, .integer, .real, .date, .data:
        let text = isEmpty ? [] : try text(of: element)
        return try scalar(element, text: text, at: start)
      }
    }

    private func deeper(_ depth: Int, _ start: Int) throws(CodecError) -> Int {
      if depth >= limits.depth {
        throw scanner.failure(
          "it is nested more than \(limits.depth) levels deep", at: start, kind: .limit)
      }
      return depth + 1
    }

    private mutating func count(_ start: Int) throws(CodecError) {
      objects += 1
      if objects > limits.objects {
        throw scanner.failure("it has more than \(limits.objects) values", at: start, kind: .limit)
      }
    }

    private mutating func array(isEmpty: Bool, depth: Int) throws(CodecError) -> PropertyList {
      var elements: [PropertyList] = []
      if isEmpty { return .array(elements) }
      while true {
        try skipMiscellany()
        if scanner.has("</") { break }
        elements.append(try value(depth: depth))
      }
      try closeTag(.array)
      return .array(elements)
    }

    private mutating func dictionary(isEmpty: Bool, depth: Int) throws(CodecError) -> PropertyList {
      var members = PropertyList.MemberCollector()
      if isEmpty { return .dictionary([]) }
      while true {
        try skipMiscellany()
        if scanner.has("</") { break }
        let start = scanner.at
        try count(start)
        let (element, isEmptyKey) = try openTag()
        guard element == .key else {
          throw scanner.failure("expected <key>, found <\(element.rawValue)>", at: start)
        }
        let key = String(decoding: isEmptyKey ? [] : try text(of: .key), as: UTF8.self)
        try skipMiscellany()
        if scanner.has("</") { throw scanner.failure("the key '\(key)' has no value", at: start) }
        members.add(key, try value(depth: depth))
      }
      try closeTag(.dict)
      return Self.reference(members.members) ?? .dictionary(members.members)
    }

    /// Returns the reference of a keyed archive, which XML represents as `{CF$UID: number}`.
    private static func reference(_ members: [PropertyList.Member]) -> PropertyList? {
      guard members.count == 1, let member = members.first, member.key == "CF$UID",
        case .integer(let number) = member.value, number >= 0
      else { return nil }
      return .uid(UInt64(number))
    }
  }
}

extension PropertyList.XMLReader {
  /// Returns the value for an element's text.
  func scalar(_ element: Element, text: [UInt8], at start: Int) throws(CodecError) -> PropertyList {
    switch element {
    case .string: return .string(String(decoding: text, as: UTF8.self))
    case .integer: if let value = Self.integer(text[...].trimmed) { return value }
    case .real: if let value = Self.real(text[...].trimmed) { return .real(value) }
    case .date:
      if let value = PropertyList.DateText.seconds(of: text[...].trimmed) { return .date(value) }
    case .data:
      let letters = text.filter { !$0.isSpace }
      if let value = Base64.decode(letters, strayBits: true) { return .data(value) }
    default: break
    }
    let shown = String(decoding: text.prefix(40), as: UTF8.self)
    throw scanner.failure("'\(shown)' is not a valid <\(element.rawValue)>", at: start)
  }

  /// Parses an optional sign and decimal digits, or `0x` and hexadecimal digits.
  private static func integer(_ text: ArraySlice<UInt8>) -> PropertyList? {
    var digits = text
    let isNegative = digits.first == UInt8(ascii: "-")
    if isNegative || digits.first == UInt8(ascii: "+") {
      digits = digits.dropFirst().drop { $0.isSpace }
    }
    let isHex = digits.starts(with: "0x".utf8) || digits.starts(with: "0X".utf8)
    if isHex { digits = digits.dropFirst(2) }
    guard let first = digits.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-"),
      let size = UInt64(String(decoding: digits, as: UTF8.self), radix: isHex ? 16 : 10)
    else { return nil }
    if isNegative {
      guard size <= UInt64(Int64.max) + 1 else { return nil }
      return .integer(Int64(truncatingIfNeeded: 0 &- size))
    }
    return size <= UInt64(Int64.max) ? .integer(Int64(size)) : .unsigned(size)
  }

  private static func real(_ text: ArraySlice<UInt8>) -> Double? {
    let string = String(decoding: text, as: UTF8.self)
    let words = ["nan", "inf", "infinity", "+inf", "+infinity", "-inf", "-infinity"]
    let isNumber = string.utf8.allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.eE".utf8.contains(byte)
    }
    guard isNumber || words.contains(string.lowercased()) else { return nil }
    return Double(string)
  }
}
