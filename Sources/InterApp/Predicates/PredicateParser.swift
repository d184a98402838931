internal import SystemIO

/// Reads the tokens of a predicate by recursive descent, whose depth is limited.
///
/// A parenthesis can begin a predicate or an expression; which of them is known only at its end.
/// The same functions therefore read both, and each caller checks that it got the kind that it
/// needs.
struct PredicateParser {
  private let text: [UInt8]
  private var scanner: PredicateScanner
  private(set) var token: PredicateToken
  /// The end of the token before the current one.
  private(set) var lastEnd = 0
  private var depth = 0

  /// A predicate or an expression, with the offset of its first byte.
  struct Part {
    let kind: Kind
    let start: Int

    enum Kind {
      case node(PredicateNode)
      case expression(PredicateExpression)
    }
  }

  init(_ text: [UInt8]) throws(PredicateFault) {
    self.text = text
    scanner = PredicateScanner(text)
    token = try scanner.next()
  }

  /// Reads the whole text as one predicate.
  mutating func predicate() throws(PredicateFault) -> PredicateNode {
    if token.kind == .end { throw fault("the predicate is empty") }
    let part = try disjunction()
    if case .expression = part.kind, token.kind != .end { throw unexpected("a comparison") }
    let node = try node(of: part)
    guard token.kind == .end else { throw unexpected("the end of the predicate") }
    return node
  }

  // MARK: - Tokens

  /// The bytes of a part of the text.
  func source(_ range: Range<Int>) -> ArraySlice<UInt8> { text[range] }

  func fault(_ reason: String, at offset: Int? = nil) -> PredicateFault {
    PredicateFault(reason, at: offset ?? token.start, in: text)
  }

  /// Returns the fault that another token is expected.
  func unexpected(_ expected: String) -> PredicateFault {
    if token.kind == .end {
      return fault("the predicate ends where \(expected) is expected")
    }
    let found = ByteString(text[token.start..<token.end].prefix(40))
    return fault("'\(found)' is found where \(expected) is expected")
  }

  mutating func advance() throws(PredicateFault) {
    lastEnd = token.end
    token = try scanner.next()
  }

  /// Skips a word if it is the current token.
  mutating func skip(_ word: PredicateToken.Word) throws(PredicateFault) -> Bool {
    guard token.kind == .word(word) else { return false }
    try advance()
    return true
  }

  /// Skips a mark if it is the current token.
  mutating func skip(mark: Unicode.Scalar) throws(PredicateFault) -> Bool {
    guard token.kind == .mark(UInt8(ascii: mark)) else { return false }
    try advance()
    return true
  }

  mutating func expect(mark: Unicode.Scalar) throws(PredicateFault) {
    guard try skip(mark: mark) else { throw unexpected("'\(mark)'") }
  }

  /// Reads a nested part.
  ///
  /// - Throws: `PredicateFault` if it is too deep.
  mutating func nested<Result>(
    _ body: (inout PredicateParser) throws(PredicateFault) -> Result
  ) throws(PredicateFault) -> Result {
    guard depth < ActivationPredicate.maximumDepth else {
      throw fault("it is nested more than \(ActivationPredicate.maximumDepth) levels deep")
    }
    depth += 1
    let result = try body(&self)
    depth -= 1
    return result
  }

  func node(of part: Part) throws(PredicateFault) -> PredicateNode {
    guard case .node(let node) = part.kind else {
      throw fault("a comparison is expected, and this is only a value", at: part.start)
    }
    return node
  }

  func expression(of part: Part) throws(PredicateFault) -> PredicateExpression {
    guard case .expression(let expression) = part.kind else {
      throw fault("a value is expected, and this is a comparison", at: part.start)
    }
    return expression
  }

  // MARK: - Compounds

  /// Reads parts that are connected by OR, which binds less tightly than AND.
  mutating func disjunction() throws(PredicateFault) -> Part {
    let first = try conjunction()
    guard token.kind == .word(.or) else { return first }
    var parts = [try node(of: first)]
    while try skip(.or) { parts.append(try node(of: try conjunction())) }
    return Part(kind: .node(.any(parts)), start: first.start)
  }

  private mutating func conjunction() throws(PredicateFault) -> Part {
    let first = try negation()
    guard token.kind == .word(.and) else { return first }
    var parts = [try node(of: first)]
    while try skip(.and) { parts.append(try node(of: try negation())) }
    return Part(kind: .node(.all(parts)), start: first.start)
  }

  private mutating func negation() throws(PredicateFault) -> Part {
    let start = token.start
    guard try skip(.not) else { return try comparison() }
    let inner = try nested { parser throws(PredicateFault) in try parser.negation() }
    return Part(kind: .node(.not(try node(of: inner))), start: start)
  }

  /// Reads a comparison, or a value or predicate that stands alone.
  private mutating func comparison() throws(PredicateFault) -> Part {
    let start = token.start
    if try skip(.truePredicate) { return Part(kind: .node(.constant(true)), start: start) }
    if try skip(.falsePredicate) { return Part(kind: .node(.constant(false)), start: start) }
    let quantifier = try quantifier()
    let left = try sum()
    let sign = token.start
    guard let operation = try operation() else {
      if quantifier != nil { throw unexpected("a comparison") }
      return left
    }
    let options = try options(of: operation)
    let value = try expression(of: left)
    let right = try expression(of: try sum())
    return Part(
      kind: .node(
        .comparison(
          PredicateComparison(
            quantifier: quantifier, left: value, operation: operation,
            ignoresCase: options.ignoresCase, ignoresMarks: options.ignoresMarks, right: right,
            start: start, sign: sign, end: lastEnd))),
      start: start)
  }

  private mutating func quantifier() throws(PredicateFault) -> PredicateComparison.Quantifier? {
    let found: PredicateComparison.Quantifier
    switch token.kind {
    case .word(.any), .word(.some): found = .any
    case .word(.all): found = .all
    case .word(.none): found = .none
    default: return nil
    }
    try advance()
    return found
  }

  private mutating func operation() throws(PredicateFault) -> PredicateComparison.Operation? {
    let found: PredicateComparison.Operation
    switch token.kind {
    case .sign(let sign): found = sign
    case .word(.in): found = .in
    case .word(.contains): found = .contains
    case .word(.beginsWith): found = .beginsWith
    case .word(.endsWith): found = .endsWith
    case .word(.like): found = .like
    case .word(.between): found = .between
    case .word(.conformsTo): found = .conformsTo
    case .word(.equalsType): found = .equalsType
    case .word(.matches): throw fault("regular expressions (MATCHES) are not supported")
    default: return nil
    }
    try advance()
    return found
  }

  /// Reads options in brackets: `[c]`, `[d]`, `[cd]`; `n` means that the texts are normalized.
  private mutating func options(
    of operation: PredicateComparison.Operation
  ) throws(PredicateFault) -> (ignoresCase: Bool, ignoresMarks: Bool) {
    let start = token.start
    guard operation.hasOptions, try skip(mark: "[") else { return (false, false) }
    guard case .name(let name) = token.kind, name.allSatisfy({ "cdnCDN".contains($0) }) else {
      throw fault("the options 'c', 'd' and 'n' are known", at: start)
    }
    try advance()
    try expect(mark: "]")
    let letters = name.lowercased()
    return (letters.contains("c"), letters.contains("d"))
  }
}
