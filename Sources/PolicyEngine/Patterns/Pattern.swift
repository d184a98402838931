/// A pattern of paths below a container's root, matched by bytes (sandboxctl-policy(5), RULES).
public struct Pattern: Sendable, Hashable {
  /// The pattern as written, with escapes for bytes that are not UTF-8.
  public let text: String
  let components: [Component]

  enum Component: Hashable, Sendable {
    /// `**`: any number of components, including none. Never twice in a row.
    case anyDepth
    case name(Name)

    var isAnyDepth: Bool { self == .anyDepth }
    var name: Name? { if case .name(let name) = self { name } else { nil } }
  }

  init(text: String, components: [Component]) {
    self.text = text
    self.components = components
  }

  /// Whether the pattern covers everything below the named entries: its last component is `**`.
  public var coversDescendants: Bool { components.last?.isAnyDepth == true }

  /// The components before the first wildcard: the directory that the rule names, which a purge
  /// does not delete.
  public var fixedPrefix: [[UInt8]] {
    var prefix: [[UInt8]] = []
    for component in components {
      guard let name = component.name, name.globs.isEmpty, name.literals.count == 1 else { break }
      prefix.append(name.literals[0])
    }
    return prefix
  }
}

extension Pattern: CustomStringConvertible {
  /// The pattern as written.
  public var description: String { text }
}

// MARK: - Step by step

extension Pattern {
  /// The state of a match after the first components of a path.
  public struct Progress: Sendable, Hashable {
    fileprivate var positions: Set<Int>

    /// Whether no continuation of the path can match.
    public var isHopeless: Bool { positions.isEmpty }
  }

  /// The state before the first component.
  public var start: Progress { closed([0]) }

  /// Returns the state after one more component.
  public func advance(_ progress: Progress, by name: Span<UInt8>) -> Progress {
    var next: Set<Int> = []
    for position in progress.positions where position < components.count {
      switch components[position] {
      case .anyDepth: next.insert(position)
      case .name(let component): if component.matches(name) { next.insert(position + 1) }
      }
    }
    return closed(next)
  }

  /// Whether a path that ends in this state matches.
  public func isMatch(_ progress: Progress) -> Bool {
    progress.positions.contains(components.count)
  }

  private func closed(_ positions: Set<Int>) -> Progress {
    var all = positions
    for position in positions where position < components.count && components[position].isAnyDepth {
      all.insert(position + 1)
    }
    return Progress(positions: all)
  }

  /// Whether the pattern is a single component, so that it matches names only.
  public var isOfNames: Bool { components.count == 1 && !coversDescendants }

  /// Whether a pattern of one component matches a name.
  public func matches(name: Span<UInt8>) -> Bool {
    components.count == 1 && components[0].name?.matches(name) ?? true
  }
}

// MARK: - Parsing

extension Pattern {
  /// Parses a pattern.
  ///
  /// - Throws: `Pattern.SyntaxError` with the problem and its position.
  public init(parsing text: String, ignoringCase: Bool = false) throws(SyntaxError) {
    try self.init(parsing: Text(text), ignoringCase: ignoringCase)
  }

  /// Parses a pattern given as bytes.
  ///
  /// - Throws: `Pattern.SyntaxError` with the problem and its position.
  public init(parsing text: Text, ignoringCase: Bool = false) throws(SyntaxError) {
    guard !text.bytes.isEmpty else {
      throw SyntaxError(
        offset: 0, problem: "the pattern is empty", expected: "`**` for everything")
    }
    var components: [Component] = []
    var reader = PatternReader(text.bytes)
    while true {
      if let alternatives = try reader.component() {
        components.append(.name(Name(alternatives, ignoringCase: ignoringCase)))
      } else if components.last?.isAnyDepth != true {
        components.append(.anyDepth)
      }
      guard reader.skipSlash() else { break }
    }
    self.init(text: text.shown, components: components)
  }

  /// Returns the pattern that also matches everything below the matched paths.
  func coveringDescendants() -> Pattern {
    coversDescendants
      ? self
      : Pattern(text: text, components: components + [.anyDepth])
  }
}

extension Pattern {
  /// The text of a pattern as given: bytes, like file names.
  public struct Text: Sendable, Hashable {
    let bytes: [UInt8]
    /// The pattern as written, or a printable form if its bytes are not UTF-8.
    let shown: String
    let isUTF8: Bool

    /// Creates the text from bytes; `shown` replaces them in output if they are not UTF-8.
    public init(_ bytes: [UInt8], shown: String) {
      let text = String(validating: bytes, as: UTF8.self)
      (self.bytes, self.shown, isUTF8) = (bytes, text ?? shown, text != nil)
    }

    /// Creates the text from a string.
    public init(_ text: String) { (bytes, shown, isUTF8) = (Array(text.utf8), text, true) }
  }
}

extension Pattern.Text: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) { self.init(text) }
}

// MARK: - Components

extension Pattern {
  /// A path component of a pattern: one of several names or globs.
  struct Name: Hashable, Sendable {
    /// The names, matched byte for byte.
    let literals: [[UInt8]]
    /// The globs.
    let globs: [Glob]

    func matches(_ name: Span<UInt8>) -> Bool {
      for literal in literals where name.isEqual(to: literal.span) { return true }
      for glob in globs where glob.matches(name) { return true }
      return false
    }

    func matches(_ name: [UInt8]) -> Bool { matches(name.span) }

    /// Whether this component matches every name that the other one matches. True is definite.
    func includes(_ other: Name) -> Bool {
      other.literals.allSatisfy { matches($0) }
        && other.globs.allSatisfy { glob in globs.contains { $0.includes(glob) } }
    }

    /// Whether this component matches every name. True is definite.
    var includesEverything: Bool { globs.contains { $0.includes(Glob.anyName) } }

    /// Names that the component matches, with stars replaced by a name that hardly any other
    /// pattern matches.
    var samples: [[UInt8]] {
      literals + globs.compactMap { $0.sample(filling: Self.filler) }
        + globs.compactMap { $0.sample(filling: []) }
    }

    /// Returns names that both components match, one for each combination; empty only if there are
    /// none.
    func commonNames(with other: Name) -> [[UInt8]] {
      var names = samples.filter(other.matches) + other.samples.filter(matches)
      for glob in globs {
        for otherGlob in other.globs {
          if let name = glob.commonName(with: otherGlob) { names.append(name) }
        }
      }
      return names
    }

    /// A name that does not occur in policies.
    static let filler = Array("zqx".utf8)
  }
}

extension Pattern.Name {
  /// Creates a component from alternatives, each in all Unicode spellings.
  init(_ alternatives: [Glob], ignoringCase: Bool) {
    var literals: [[UInt8]] = []
    var globs: [Glob] = []
    for alternative in alternatives {
      for spelling in Spelling.allCases {
        var glob = alternative.spelled(spelling)
        if ignoringCase { glob = glob.ignoringCase }
        if let literal = glob.literal {
          if !literals.contains(literal) { literals.append(literal) }
        } else if !globs.contains(glob) {
          globs.append(glob)
        }
      }
    }
    self.init(literals: literals, globs: globs)
  }
}

// MARK: - Relations

extension Pattern {
  /// Whether this pattern matches every path that the other pattern matches.
  ///
  /// True is definite; false can be wrong for patterns with many wildcards.
  public func includes(_ other: Pattern) -> Bool {
    WildcardRelation(
      outer: components.count, isOuterStar: { components[$0].isAnyDepth },
      inner: other.components.count, isInnerStar: { other.components[$0].isAnyDepth },
      covers: { outer, inner in
        guard let mine = components[outer].name, let theirs = other.components[inner].name else {
          return false
        }
        return mine.includes(theirs)
      },
      coversAny: { components[$0].name?.includesEverything == true }
    ).includes()
  }

  /// Returns paths that the pattern matches. Each alternative occurs in at least one of them, stars
  /// are replaced by a name that hardly any other pattern matches, and `**` by `depth` components.
  func samples(depth: Int) -> [[[UInt8]]] {
    let filler = Array(repeating: Name.filler, count: depth)
    let choices: [[[UInt8]]?] = components.map { $0.name?.samples }
    guard !choices.contains([]) else { return [] }
    let count = choices.compactMap { $0?.count }.max() ?? 1
    return (0..<count).map { choice in
      var path: [[UInt8]] = []
      for names in choices {
        if let names { path.append(names[choice % names.count]) } else { path += filler }
      }
      return path
    }
  }
}

extension Span<UInt8> {
  /// Whether both spans hold the same bytes: a loop, since a call of memcmp(3) takes longer than
  /// the comparison of a name of a few bytes, and this module has no access to SystemIO.
  @inline(__always)
  func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in 0..<count where self[index] != other[index] { return false }
    return true
  }
}
