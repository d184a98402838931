internal import SystemIO

/// Reads an XML property list. Supports only Apple's document type and XML's own entities.
package struct XMLPropertyListReader {
  let bytes: [UInt8]
  let limits: PropertyList.Limits
  var at = 0
  var objects = 0

  /// The elements of a property list.
  enum Element: String {
    case plist, dict, array, key, string, integer, real, date, data
    case yes = "true"
    case no = "false"
  }

  init(_ bytes: [UInt8], limits: PropertyList.Limits) throws(ModelError) {
    self.bytes = try Self.utf8(bytes)
    self.limits = limits
  }

  /// Reads the prolog and the value up to the end of the document.
  mutating func document() throws(ModelError) -> PropertyList {
    try prolog()
    guard try openTag() == (.plist, false) else {
      throw failure("the first element is not <plist>", at: 0)
    }
    try skipMiscellany()
    let value = try value(depth: 0)
    try skipMiscellany()
    try closeTag(.plist)
    try skipMiscellany()
    if at < bytes.count { throw failure("unexpected content after </plist>") }
    return value
  }

  /// Reads the element at the current position.
  mutating func value(depth: Int) throws(ModelError) -> PropertyList {
    let start = at
    try count(start)
    let (element, isEmpty) = try openTag()
    switch element {
    case .dict: return try dictionary(isEmpty: isEmpty, depth: try deeper(depth, start))
    case .array: return try array(isEmpty: isEmpty, depth: try deeper(depth, start))
    case .plist, .key:
      throw failure("expected a value, found <\(element.rawValue)>", at: start)
    case .yes, .no:
      if !isEmpty { try closeTag(element) }
      return .bool(element == .yes)
    case .string, .integer, .real, .date, .data:
      let text = isEmpty ? [] : try text(of: element)
      return try scalar(element, text: text, at: start)
    }
  }

  private func deeper(_ depth: Int, _ start: Int) throws(ModelError) -> Int {
    if depth >= limits.depth {
      throw failure("it is nested more than \(limits.depth) levels deep", at: start, code: .limit)
    }
    return depth + 1
  }

  private mutating func count(_ start: Int) throws(ModelError) {
    objects += 1
    if objects > limits.objects {
      throw failure("it has more than \(limits.objects) values", at: start, code: .limit)
    }
  }

  private mutating func array(isEmpty: Bool, depth: Int) throws(ModelError) -> PropertyList {
    var elements: [PropertyList] = []
    if isEmpty { return .array(elements) }
    while true {
      try skipMiscellany()
      if has("</") { break }
      elements.append(try value(depth: depth))
    }
    try closeTag(.array)
    return .array(elements)
  }

  private mutating func dictionary(isEmpty: Bool, depth: Int) throws(ModelError) -> PropertyList {
    var members = MemberCollector()
    if isEmpty { return .dictionary([]) }
    while true {
      try skipMiscellany()
      if has("</") { break }
      let start = at
      try count(start)
      let (element, isEmptyKey) = try openTag()
      guard element == .key else {
        throw failure("expected <key>, found <\(element.rawValue)>", at: start)
      }
      let key = ByteString(isEmptyKey ? [] : try text(of: .key))
      try skipMiscellany()
      if has("</") { throw failure("the key '\(key)' has no value", at: start) }
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

/// Collects members in order; a later member replaces an earlier one with the same key.
struct MemberCollector {
  private(set) var members: [PropertyList.Member] = []
  private var places: [ByteString: Int] = [:]

  mutating func add(_ key: ByteString, _ value: PropertyList) {
    if let place = places[key] {
      members[place] = PropertyList.Member(key, value)
    } else {
      places[key] = members.count
      members.append(PropertyList.Member(key, value))
    }
  }
}
