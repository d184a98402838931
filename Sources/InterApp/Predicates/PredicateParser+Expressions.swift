internal import SystemIO

extension PredicateParser {
  /// Reads values that are added and subtracted.
  mutating func sum() throws(PredicateFault) -> Part {
    try chain(of: "+", "-") { parser throws(PredicateFault) in try parser.product() }
  }

  private mutating func product() throws(PredicateFault) -> Part {
    try chain(of: "*", "/") { parser throws(PredicateFault) in try parser.factor() }
  }

  private mutating func chain(
    of first: Unicode.Scalar, _ second: Unicode.Scalar,
    _ element: (inout PredicateParser) throws(PredicateFault) -> Part
  ) throws(PredicateFault) -> Part {
    let start = try element(&self)
    var terms: [PredicateExpression.Term] = []
    while case .mark(let sign) = token.kind,
      sign == UInt8(ascii: first) || sign == UInt8(ascii: second)
    {
      let offset = token.start
      if terms.isEmpty { _ = try expression(of: start) }
      try advance()
      terms.append(
        PredicateExpression.Term(
          sign: sign, value: try expression(of: try element(&self)), offset: offset))
    }
    if terms.isEmpty { return start }
    return Part(
      kind: .expression(.arithmetic(try expression(of: start), terms)), start: start.start)
  }

  /// Reads a value with the steps after it, or a predicate in parentheses.
  private mutating func factor() throws(PredicateFault) -> Part {
    let start = token.start
    if try skip(mark: "-") {
      let inner = try nested { parser throws(PredicateFault) in try parser.factor() }
      let term = PredicateExpression.Term(
        sign: UInt8(ascii: "-"), value: try expression(of: inner), offset: start)
      return Part(kind: .expression(.arithmetic(.value(.number(0)), [term])), start: start)
    }
    let first = try primary()
    guard case .expression(let base) = first.kind else { return first }
    let steps = try steps()
    if steps.isEmpty { return first }
    if case .path(let inner, let before) = base {
      return Part(kind: .expression(.path(inner, before + steps)), start: start)
    }
    return Part(kind: .expression(.path(base, steps)), start: start)
  }

  // MARK: - Values

  private mutating func primary() throws(PredicateFault) -> Part {
    let start = token.start
    switch token.kind {
    case .mark(UInt8(ascii: "(")):
      try advance()
      let inner = try nested { parser throws(PredicateFault) in try parser.disjunction() }
      try expect(mark: ")")
      return Part(kind: inner.kind, start: start)
    case .mark(UInt8(ascii: "{")): return Part(kind: .expression(try literalList()), start: start)
    case .name(let name): return Part(kind: .expression(try named(name)), start: start)
    case .word(.subquery): return Part(kind: .expression(try subquery()), start: start)
    default: break
    }
    guard let value = simpleValue() else { throw outsideGrammar() }
    try advance()
    return Part(kind: .expression(value), start: start)
  }

  /// Returns the value that is the current token, or nil.
  private func simpleValue() -> PredicateExpression? {
    switch token.kind {
    case .text(let text): .value(.text(text))
    case .number(let number): .value(.number(number))
    case .variable(let name): .variable(name, offset: token.start)
    case .word(.yes), .word(.true): .value(.bool(true))
    case .word(.no), .word(.false): .value(.bool(false))
    case .word(.null), .word(.nil): .value(.null)
    case .word(.self): .object
    default: nil
    }
  }

  private func outsideGrammar() -> PredicateFault {
    switch token.kind {
    case .word(.function), .word(.fetch), .word(.cast), .word(.ternary), .word(.anyKey):
      fault("the function is not supported")
    case .function: fault("a function is supported only after a list and a dot, as .@count")
    default: unexpected("a value")
    }
  }

  /// Reads a list in braces.
  private mutating func literalList() throws(PredicateFault) -> PredicateExpression {
    try expect(mark: "{")
    var elements: [PredicateExpression] = []
    if try skip(mark: "}") { return .list([]) }
    repeat {
      elements.append(
        try nested { parser throws(PredicateFault) in
          try parser.expression(of: try parser.sum())
        })
    } while try skip(mark: ",")
    try expect(mark: "}")
    return .list(elements)
  }

  /// Reads a key of the object, or the function `count(…)`.
  private mutating func named(_ name: String) throws(PredicateFault) -> PredicateExpression {
    let start = token.start
    try advance()
    guard token.kind == .mark(UInt8(ascii: "(")) else {
      return .path(.object, [PredicateExpression.Step(kind: .key(name), offset: start)])
    }
    guard name == "count" else {
      throw fault("the function '\(ByteString(name))' is not supported", at: start)
    }
    try advance()
    let list = try nested { parser throws(PredicateFault) in
      try parser.expression(of: try parser.sum())
    }
    try expect(mark: ")")
    return .path(list, [PredicateExpression.Step(kind: .count, offset: start)])
  }

  private mutating func subquery() throws(PredicateFault) -> PredicateExpression {
    let start = token.start
    try advance()
    try expect(mark: "(")
    let list = try nested { parser throws(PredicateFault) in
      try parser.expression(of: try parser.sum())
    }
    try expect(mark: ",")
    guard case .variable(let variable) = token.kind else {
      throw unexpected("a variable such as $item")
    }
    try advance()
    try expect(mark: ",")
    let predicate = try nested { parser throws(PredicateFault) in
      try parser.node(of: try parser.disjunction())
    }
    try expect(mark: ")")
    return .subquery(
      PredicateExpression.Subquery(
        list: list, variable: variable, predicate: predicate, offset: start))
  }

  // MARK: - Key paths

  private mutating func steps() throws(PredicateFault) -> [PredicateExpression.Step] {
    var steps: [PredicateExpression.Step] = []
    while true {
      if try skip(mark: ".") {
        steps.append(try key())
      } else if try skip(mark: "[") {
        steps.append(try index())
        try expect(mark: "]")
      } else {
        return steps
      }
    }
  }

  private mutating func key() throws(PredicateFault) -> PredicateExpression.Step {
    let offset = token.start
    let kind: PredicateExpression.Step.Kind
    switch token.kind {
    case .name(let name): kind = .key(name)
    case .function("count"): kind = .count
    case .function(let name):
      throw fault("'@\(ByteString(name))' is not supported, only @count")
    // After a dot, a reserved word is a key.
    case .word(let word) where !word.rawValue.contains("-"):
      kind = .key(String(decoding: source(token.start..<token.end), as: UTF8.self))
    default: throw unexpected("a key")
    }
    try advance()
    return PredicateExpression.Step(kind: kind, offset: offset)
  }

  private mutating func index() throws(PredicateFault) -> PredicateExpression.Step {
    let offset = token.start
    if try skip(.first) { return PredicateExpression.Step(kind: .first, offset: offset) }
    if try skip(.last) { return PredicateExpression.Step(kind: .last, offset: offset) }
    if try skip(.size) { return PredicateExpression.Step(kind: .count, offset: offset) }
    let value = try nested { parser throws(PredicateFault) in
      try parser.expression(of: try parser.sum())
    }
    return PredicateExpression.Step(kind: .index(value), offset: offset)
  }
}
