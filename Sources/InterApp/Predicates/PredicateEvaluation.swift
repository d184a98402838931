internal import SystemIO

/// One evaluation of a predicate. The depth of the recursion is that of the predicate, and the
/// number of steps is limited.
struct PredicateEvaluation {
  let predicate: ActivationPredicate
  private let attachments: SharedAttachments
  private let tree: TypeTree
  private var variables: [String: PredicateValue] = [:]
  private var steps = 0
  /// The types to which each type conforms, including itself, by the type's key.
  private var conformance: [ByteString: Set<ByteString>] = [:]
  /// The attachments for which the predicate of a subquery was evaluated, and those for which it
  /// was true.
  private(set) var examined: Set<Int> = []
  private(set) var matched: Set<Int> = []

  /// The maximum number of parts, list elements and values that are evaluated.
  static let stepLimit = 1_000_000

  init(
    _ predicate: ActivationPredicate, of attachments: SharedAttachments, in tree: TypeTree
  ) {
    self.predicate = predicate
    self.attachments = attachments
    self.tree = tree
  }

  func fault(_ reason: String, at offset: Int) -> PredicateFault {
    PredicateFault(reason, at: offset, in: predicate.text)
  }

  /// Counts steps.
  ///
  /// - Throws: `PredicateFault` if there are more than `stepLimit`.
  mutating func count(_ number: Int = 1) throws(PredicateFault) {
    steps += number
    if steps > Self.stepLimit {
      throw fault("the evaluation takes more than \(Self.stepLimit) steps", at: 0)
    }
  }

  /// Counts the steps for text operations: one for each 16 bytes.
  mutating func count(bytes: Int) throws(PredicateFault) { try count(bytes / 16) }

  // MARK: - Predicates

  /// Whether a part is true.
  mutating func holds(_ node: PredicateNode) throws(PredicateFault) -> Bool {
    try count()
    switch node {
    case .constant(let value): return value
    case .not(let part): return try !holds(part)
    case .all(let parts):
      for part in parts { if try !holds(part) { return false } }
      return true
    case .any(let parts):
      for part in parts { if try holds(part) { return true } }
      return false
    case .comparison(let comparison): return try holds(comparison)
    }
  }

  private mutating func holds(_ comparison: PredicateComparison) throws(PredicateFault) -> Bool {
    let left = try value(of: comparison.left)
    let right = try value(of: comparison.right)
    guard let quantifier = comparison.quantifier else {
      return try compare(left, with: right, by: comparison)
    }
    guard case .list(let elements) = left else {
      throw fault("ANY, ALL and NONE need a list, and this is \(left.shown)", at: comparison.start)
    }
    for element in elements {
      let holds = try compare(element, with: right, by: comparison)
      switch quantifier {
      case .any: if holds { return true }
      case .none: if holds { return false }
      case .all: if !holds { return false }
      }
    }
    return quantifier != .any
  }

  // MARK: - Values

  /// Returns the value of an expression.
  mutating func value(of expression: PredicateExpression) throws(PredicateFault) -> PredicateValue {
    try count()
    switch expression {
    case .value(let value): return value
    case .object: return .object(.context)
    case .list(let elements):
      var values: [PredicateValue] = []
      for element in elements { values.append(try value(of: element)) }
      return .list(values)
    case .variable(let name, let offset):
      guard let value = variables[name] else {
        throw fault("the variable '$\(ByteString(name))' is not defined here", at: offset)
      }
      return value
    case .subquery(let subquery): return try value(of: subquery)
    case .path(let base, let steps):
      var value = try value(of: base)
      for step in steps { value = try self.value(of: step, on: value) }
      return value
    case .arithmetic(let first, let terms): return try value(of: first, terms)
    }
  }

  private mutating func value(
    of subquery: PredicateExpression.Subquery
  ) throws(PredicateFault) -> PredicateValue {
    let value = try value(of: subquery.list)
    guard case .list(let elements) = value else {
      throw fault("SUBQUERY needs a list, and this is \(value.shown)", at: subquery.offset)
    }
    let outer = variables[subquery.variable]
    var found: [PredicateValue] = []
    for element in elements {
      variables[subquery.variable] = element
      let holds = try holds(subquery.predicate)
      if holds { found.append(element) }
      if case .object(.attachment(let number)) = element {
        examined.insert(number)
        if holds { matched.insert(number) }
      }
    }
    variables[subquery.variable] = outer
    return .list(found)
  }

  private mutating func value(
    of first: PredicateExpression, _ terms: [PredicateExpression.Term]
  ) throws(PredicateFault) -> PredicateValue {
    var result = try number(first, at: terms.first?.offset ?? 0)
    for term in terms {
      let number = try number(term.value, at: term.offset)
      switch term.sign {
      case UInt8(ascii: "+"): result += number
      case UInt8(ascii: "-"): result -= number
      case UInt8(ascii: "*"): result *= number
      default:
        if number == 0 { throw fault("a division by 0", at: term.offset) }
        result /= number
      }
    }
    return .number(result)
  }

  private mutating func number(
    _ expression: PredicateExpression, at offset: Int
  ) throws(PredicateFault) -> Double {
    let value = try value(of: expression)
    guard let number = value.number else {
      throw fault("a number is expected, and this is \(value.shown)", at: offset)
    }
    return number
  }

  // MARK: - Key paths

  private mutating func value(
    of step: PredicateExpression.Step, on value: PredicateValue
  ) throws(PredicateFault) -> PredicateValue {
    if case .key(let key) = step.kind {
      return try self.value(ofKey: key, on: value, at: step.offset)
    }
    guard case .list(let list) = value else {
      throw fault("a list is expected here, and this is \(value.shown)", at: step.offset)
    }
    switch step.kind {
    case .key: return .null
    case .count: return .number(Double(list.count))
    case .first: return list.first ?? .null
    case .last: return list.last ?? .null
    case .index(let expression):
      let number = try number(expression, at: step.offset)
      guard let index = Int(exactly: number), list.indices.contains(index) else {
        throw fault("a list of \(list.count) elements has none at this index", at: step.offset)
      }
      return list[index]
    }
  }

  private mutating func value(
    ofKey key: String, on value: PredicateValue, at offset: Int
  ) throws(PredicateFault) -> PredicateValue {
    try count()
    switch value {
    case .null: return .null
    case .object(let object):
      if let found = try self.value(ofKey: key, of: object) { return found }
      throw fault(
        "the key '\(ByteString(key))' is not supported: \(object.knownKey) is known", at: offset)
    case .list(let list):
      var values: [PredicateValue] = []
      for element in list { values.append(try self.value(ofKey: key, on: element, at: offset)) }
      return .list(values)
    default: throw fault("\(value.shown) has no key '\(ByteString(key))'", at: offset)
    }
  }

  private mutating func value(
    ofKey key: String, of object: PredicateObject
  ) throws(PredicateFault) -> PredicateValue? {
    guard key == object.knownKey else { return nil }
    switch object {
    case .context: return .list([.object(.item(0))])
    case .item:
      try count(attachments.all.count)
      return .list(attachments.all.indices.map { .object(.attachment($0)) })
    case .attachment(let number):
      return .list(
        attachments.all[number].types.map { .text(String(decoding: $0.bytes.bytes, as: UTF8.self)) }
      )
    }
  }

  /// Whether a type conforms to another one, both given as texts.
  mutating func conforms(_ type: String, to other: String) -> Bool {
    let (key, wanted) = (ByteString(type).lowercasedASCII, ByteString(other).lowercasedASCII)
    if key == wanted { return true }
    if let known = conformance[key] { return known.contains(wanted) }
    let keys = TypeIdentifier(key).map { Set(tree.ancestors(of: $0).map(\.key)) } ?? []
    conformance[key] = keys
    return keys.contains(wanted)
  }
}

extension PredicateObject {
  /// A key of an object that a predicate can use (NSExtensionContext, NSExtensionItem,
  /// NSItemProvider). Titles, texts and user information come from the sharing app and are unknown.
  fileprivate var knownKey: String {
    switch self {
    case .context: "extensionItems"
    case .item: "attachments"
    case .attachment: "registeredTypeIdentifiers"
    }
  }
}
