internal import SystemIO

/// Reads one XML property list: Apple's document type only, no entities but XML's own.
struct XMLPropertyListReader {
  let bytes: [UInt8]
  let limits: PropertyList.Limits
  var at = 0
  var objects = 0

  /// The elements that a property list has.
  enum Element: String {
    case plist, dict, array, key, string, integer, real, date, data
    case yes = "true"
    case no = "false"
  }

  init(_ bytes: [UInt8], limits: PropertyList.Limits) throws(ModelError) {
    self.bytes = try Self.utf8(bytes)
    self.limits = limits
  }

  /// Reads prolog, value and what may follow it.
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
    if at < bytes.count { throw failure("there is something after </plist>") }
    return value
  }

  /// Reads the element that begins here.
  mutating func value(depth: Int) throws(ModelError) -> PropertyList {
    let start = at
    try count(start)
    let (element, isEmpty) = try openTag()
    switch element {
    case .dict: return try dictionary(isEmpty: isEmpty, depth: try deeper(depth, start))
    case .array: return try array(isEmpty: isEmpty, depth: try deeper(depth, start))
    case .plist, .key:
      throw failure("<\(element.rawValue)> stands where a value is expected", at: start)
    case .yes, .no:
      if !isEmpty { try closeTag(element) }
      return .bool(element == .yes)
    case .string, .integer, .real, .date, .data:
      let text = isEmpty ? [] : try text(of: element)
      return try scalar(element, text, start)
    }
  }

  private func deeper(_ depth: Int, _ start: Int) throws(ModelError) -> Int {
    if depth >= limits.depth {
      throw failure("it is nested more than \(limits.depth) deep", at: start, code: .limit)
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
        throw failure("<\(element.rawValue)> stands where a <key> is expected", at: start)
      }
      let key = ByteString(isEmptyKey ? [] : try text(of: .key))
      try skipMiscellany()
      if has("</") { throw failure("the key '\(key)' has no value", at: start) }
      members.add(key, try value(depth: depth))
    }
    try closeTag(.dict)
    return Self.reference(members.members) ?? .dictionary(members.members)
  }

  /// A keyed archive's reference, which XML writes as `{CF$UID: number}`.
  private static func reference(_ members: [PropertyList.Member]) -> PropertyList? {
    guard members.count == 1, let member = members.first, member.key == "CF$UID",
      case .integer(let number) = member.value, number >= 0
    else { return nil }
    return .uid(UInt64(number))
  }
}

/// Collects members in their order; a later one with the same key takes the earlier one's place.
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
