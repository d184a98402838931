package import PolicyEngine
internal import SystemIO

extension ScenarioExpectation {
  /// Returns the failures of the assertions in a state; none if the expectation does not apply to
  /// the version of the platform.
  package func failures(
    in facts: some ScenarioFacts, moments: [String: ScenarioMoment], version: OSVersion?
  ) throws -> [ScenarioFailure] {
    guard versions.contains(version) else { return [] }
    let found = try facts.entries().filter { matches($0.path) }
    return try assertions.compactMap { located in
      let result = try check(located.assertion, of: found, in: facts, moments)
      return result.map { found, paths in
        ScenarioFailure(
          at: located.location, expected: located.assertion.text, found: found, paths: paths)
      }
    }
  }

  /// Returns the state that was found instead, and the paths; nil if the assertion holds.
  private func check(
    _ assertion: Assertion, of found: [ScenarioEntry], in facts: some ScenarioFacts,
    _ moments: [String: ScenarioMoment]
  ) throws -> (found: String, paths: [ByteString])? {
    switch assertion {
    case .exists: return found.isEmpty ? ("no entry matches", []) : nil
    case .absent: return Self.result("entries exist", found)
    case .sameBytes(let name):
      let before = try entries(of: name, moments)
      let now = Dictionary(found.map { ($0.path, $0) }) { first, _ in first }
      if before.isEmpty { return ("no entry matched at '\(name)'", []) }
      return Self.result(
        "entries are missing or have other bytes",
        try before.filter { entry in
          guard let present = now[entry.path], present.kind == entry.kind else { return true }
          return try entry.digest != nil && facts.digest(of: present) != entry.digest
        })
    case .survived(let name):
      let (before, now) = (try entries(of: name, moments), Set(found.map(\.path)))
      if before.isEmpty { return ("no entry matched at '\(name)'", []) }
      return Self.result("entries are missing", before.filter { !now.contains($0.path) })
    case .vanished(let name):
      let (before, now) = (try entries(of: name, moments), Set(found.map(\.path)))
      if before.isEmpty { return ("no entry matched at '\(name)'", []) }
      return Self.result("entries still exist", before.filter { now.contains($0.path) })
    case .dataClass(let wanted):
      return each(found, or: "entries have another class") { $0.verdicts.keep.dataClass == wanted }
    case .verdict(let view, let values):
      return each(found, or: "entries have other values") { values.agree(with: $0.verdicts[view]) }
    case .mark(.excluded): return each(found, or: "entries have no mark") { !$0.marks.isEmpty }
    case .mark(.none): return each(found, or: "entries have a mark") { $0.marks.isEmpty }
    case .mark(.attribute(let name)):
      return each(found, or: "entries do not have it") { $0.marks.contains(name) }
    }
  }

  private func entries(
    of name: String, _ moments: [String: ScenarioMoment]
  ) throws -> [ScenarioEntry] {
    (moments[name]?.entries() ?? []).filter { matches($0.path) }
  }

  private func each(
    _ found: [ScenarioEntry], or words: String, _ isMet: (ScenarioEntry) -> Bool
  ) -> (found: String, paths: [ByteString])? {
    if found.isEmpty { return ("no entry matches", []) }
    return Self.result(words, found.filter { !isMet($0) })
  }

  private static func result(
    _ words: String, _ wrong: [ScenarioEntry]
  ) -> (found: String, paths: [ByteString])? {
    wrong.isEmpty ? nil : (words, wrong.map(\.path))
  }
}

extension ScenarioExpectation.Values {
  /// Whether a verdict has the values.
  fileprivate func agree(with verdict: Verdict) -> Bool {
    let present: Purge =
      switch verdict.purge.terms?.when {
      case nil: .never
      case .anytime: .anytime
      case .underPressure: .underPressure
      }
    return (dataClass ?? verdict.dataClass) == verdict.dataClass
      && (backup ?? verdict.backup.standard) == verdict.backup.standard
      && (update ?? verdict.update) == verdict.update
      && (restore ?? verdict.restore) == verdict.restore && (purge ?? present) == present
  }

  /// The values in the syntax of a document.
  fileprivate var text: String {
    let words = [
      ("class", dataClass?.rawValue), ("backup", backup?.rawValue), ("update", update?.rawValue),
      ("purge", purge?.rawValue), ("restore", restore?.rawValue),
    ]
    return words.compactMap { key, value in value.map { "\(key) \($0)" } }.joined(separator: ", ")
  }
}

extension ScenarioExpectation.Assertion {
  /// The assertion in reports.
  fileprivate var text: String {
    switch self {
    case .exists: "an entry exists"
    case .absent: "no entry exists"
    case .sameBytes(let moment): "the bytes of '\(moment)'"
    case .survived(let moment): "all entries of '\(moment)' exist"
    case .vanished(let moment): "no entry of '\(moment)' exists"
    case .dataClass(let wanted): "class \(wanted.rawValue)"
    case .verdict(let view, let values): "\(view.rawValue): \(values.text)"
    case .mark(.excluded): "an exclusion mark"
    case .mark(.none): "no exclusion mark"
    case .mark(.attribute(let name)): "the mark '\(name)'"
    }
  }
}
