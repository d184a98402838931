package import SandboxModel

/// A query for the verdicts on an entry, given by its full path.
package struct EntryQuery: Sendable, Hashable {
  /// The kind of container.
  package var kind: ContainerKind
  /// The bundle identifier of the app that owns the container.
  package var app: String?
  /// The group identifier, for a group container.
  package var group: String?
  /// The names from the container's root to the entry; empty for the root itself.
  package var path: [[UInt8]]
  /// The properties of the entry.
  package var facts: EntryFacts
  /// The marks on the entry and on its parent directories, by depth; 0 is the container's root.
  package var marks: [Int: MarkSet]
  /// The sibling names in the parent directories, by depth.
  package var siblings: [Int: SiblingSet]

  /// Creates a query.
  package init(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil, path: [[UInt8]],
    facts: EntryFacts = EntryFacts(.file), marks: [Int: MarkSet] = [:],
    siblings: [Int: SiblingSet] = [:]
  ) {
    self.kind = kind
    self.app = app
    self.group = group
    self.path = path
    self.facts = facts
    self.marks = marks
    self.siblings = siblings
  }

  /// Creates a query from a path with its names separated by slashes.
  package init(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil, path: String,
    facts: EntryFacts = EntryFacts(.file)
  ) {
    self.init(
      kind, app: app, group: group,
      path: path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }, facts: facts)
  }
}

extension Classifier {
  /// Returns the state of a query's entry, starting at the container's root.
  package mutating func state(_ query: EntryQuery) -> State {
    var state = root(query.kind, app: query.app, group: query.group)
    for (depth, name) in query.path.enumerated() {
      if let marks = query.marks[depth] { state = marking(state, marks) }
      if let siblings = query.siblings[depth] { state = holding(state, siblings) }
      state = descend(state, name.span)
    }
    if let marks = query.marks[query.path.count] { state = marking(state, marks) }
    return state
  }

  /// Returns the verdicts on a query's entry.
  package mutating func verdicts(_ query: EntryQuery) -> Verdicts {
    verdicts(state(query), query.facts)
  }

  /// Returns the state at a path relative to a known state. Names are separated by slashes; empty
  /// names are ignored.
  package mutating func descend(_ state: State, path: Span<UInt8>) -> State {
    var state = state
    var start = 0
    for index in 0...path.count {
      guard index == path.count || path[index] == UInt8(ascii: "/") else { continue }
      if index > start { state = descend(state, path.extracting(start..<index)) }
      start = index + 1
    }
    return state
  }
}
