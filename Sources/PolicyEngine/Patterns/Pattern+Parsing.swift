extension Pattern {
  /// Parses a pattern.
  ///
  /// - Throws: `PatternError` with the problem and its position.
  package init(parsing text: String, ignoringCase: Bool = false) throws(PatternError) {
    try self.init(parsing: PatternText(text), ignoringCase: ignoringCase)
  }

  /// Parses a pattern given as bytes.
  ///
  /// - Throws: `PatternError` with the problem and its position.
  package init(parsing text: PatternText, ignoringCase: Bool = false) throws(PatternError) {
    guard !text.bytes.isEmpty else {
      throw PatternError(
        offset: 0, problem: "the pattern is empty", expected: "`**` for everything")
    }
    var components: [Component] = []
    var reader = PatternReader(text.bytes)
    while true {
      if let alternatives = try reader.component() {
        components.append(.name(PatternComponent(alternatives, ignoringCase: ignoringCase)))
      } else if components.last?.isAnyDepth != true {
        components.append(.anyDepth)
      }
      guard reader.skipSlash() else { break }
    }
    self.init(text: text.shown, ignoresCase: ignoringCase, components: components)
  }

  /// Returns the pattern that also matches everything below the matched paths.
  func coveringDescendants() -> Pattern {
    coversDescendants
      ? self
      : Pattern(text: text, ignoresCase: ignoresCase, components: components + [.anyDepth])
  }
}

extension PatternComponent {
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

extension Glob {
  /// The bytes, or nil if the glob has a wildcard.
  fileprivate var literal: [UInt8]? {
    codes.allSatisfy { $0 < Self.any } ? codes.map { UInt8($0) } : nil
  }

  /// Returns the glob with the text between wildcards in another Unicode spelling.
  fileprivate func spelled(_ spelling: Spelling) -> Glob {
    guard spelling != .written, codes.contains(where: { 0x80..<Self.any ~= $0 }) else {
      return self
    }
    var spelled: [UInt16] = []
    var run: [UInt8] = []
    for code in codes {
      if code < Self.any {
        run.append(UInt8(code))
      } else {
        spelled.append(contentsOf: spelling.spell(run).map { UInt16($0) })
        run = []
        spelled.append(code)
      }
    }
    spelled.append(contentsOf: spelling.spell(run).map { UInt16($0) })
    return Glob(codes: spelled, sets: sets)
  }

  /// The glob with each ASCII letter in both cases.
  fileprivate var ignoringCase: Glob {
    var sets = sets.map(\.ignoringCase)
    var codes: [UInt16] = []
    for code in self.codes {
      guard code < Self.any, let pair = ByteSet.bothCases(of: UInt8(code)) else {
        codes.append(code)
        continue
      }
      let index = sets.firstIndex(of: pair) ?? sets.count
      if index == sets.count { sets.append(pair) }
      codes.append(Self.firstSet + UInt16(index))
    }
    return Glob(codes: codes, sets: sets)
  }
}

extension ByteSet {
  /// Returns an ASCII letter in both cases, or nil for any other byte.
  fileprivate static func bothCases(of byte: UInt8) -> ByteSet? {
    let lower = byte | 0x20
    guard UInt8(ascii: "a")...UInt8(ascii: "z") ~= lower else { return nil }
    return ByteSet([lower, lower & ~0x20])
  }

  fileprivate var ignoringCase: ByteSet {
    var set = self
    for byte in members {
      for other in Self.bothCases(of: byte)?.members ?? [] { set.insert(other) }
    }
    return set
  }
}
