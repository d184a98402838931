import SandboxModel
import Testing

@testable import PolicyEngine

/// Creates a library of texts, which count as built-in unless an origin is given.
func library(
  _ files: KeyValuePairs<String, String>, origin: PolicySource.Origin = .builtin
) -> PolicyLibrary {
  PolicyLibrary(files.map { PolicySource(name: $0.key, text: $0.value, origin: origin) })
}

/// Compiles a text that contains one policy. The test fails if there are issues.
func compile(
  _ text: String, layout: Layout? = nil, osVersion: String? = nil,
  patterns: [CommandLinePattern] = []
) throws -> CompiledPolicy {
  let library = library(["p.yaml": text])
  #expect(library.lint().filter { $0.kind != .unmatchable }.map(\.description) == [])
  return try library.compile(
    PolicyRequest(
      policy: library.policyNames.first, layout: layout,
      osVersion: osVersion.flatMap { OSVersion($0) }, patterns: patterns))
}

extension CompiledPolicy {
  /// Returns the verdicts on a path. The classifier and the explanation must agree on them.
  func verdicts(
    _ path: String, in kind: ContainerKind = .data, app: String? = nil, group: String? = nil,
    facts: EntryFacts = EntryFacts(.file), scanStart: Int64 = 0, marks: [Int: [String]] = [:],
    siblings: [Int: [String]] = [:], sourceLocation: SourceLocation = #_sourceLocation
  ) -> Verdicts {
    let query = query(
      path, in: kind, app: app, group: group, facts: facts, marks: marks, siblings: siblings)
    var classifier = Classifier(self, scanStart: scanStart)
    let verdicts = classifier.verdicts(query)
    #expect(
      explain(query, scanStart: scanStart).verdicts == verdicts, "explain differs",
      sourceLocation: sourceLocation)
    return verdicts
  }

  func query(
    _ path: String, in kind: ContainerKind = .data, app: String? = nil, group: String? = nil,
    facts: EntryFacts = EntryFacts(.file), marks: [Int: [String]] = [:],
    siblings: [Int: [String]] = [:]
  ) -> EntryQuery {
    var query = EntryQuery(kind, app: app, group: group, path: path, facts: facts)
    for (depth, names) in marks { query.marks[depth] = markSet(names) }
    for (depth, names) in siblings {
      query.siblings[depth] = names.reduce(into: []) { set, name in
        for (index, known) in siblingNames.enumerated() where known == Array(name.utf8) {
          set.insert(SiblingSet(sibling: index))
        }
      }
    }
    return query
  }

  func markSet(_ names: [String]) -> MarkSet {
    markers.indices.reduce(into: []) { set, index in
      if names.contains(markers[index].id) { set.insert(MarkSet(marker: index)) }
    }
  }

  func keep(
    _ path: String, in kind: ContainerKind = .data, facts: EntryFacts = EntryFacts(.file),
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Verdict {
    verdicts(path, in: kind, facts: facts, sourceLocation: sourceLocation).keep
  }
}

extension Pattern {
  /// Whether the pattern matches a path, given as components. The container's root has none.
  func matches(_ path: [[UInt8]]) -> Bool {
    isMatch(path.reduce(start) { advance($0, by: $1.span) })
  }
}

typealias SourceLocation = Testing.SourceLocation
