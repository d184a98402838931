public import SandboxModel

/// An entry of which a policy is asked, by its whole path.
public struct EntryQuery: Sendable, Hashable {
  /// The kind of container.
  public var kind: ContainerKind
  /// The bundle identifier of the app whose container it is.
  public var app: String?
  /// The group identifier of the group whose container it is.
  public var group: String?
  /// The names on the way from the container's root; none for the root itself.
  public var path: [[UInt8]]
  /// What the entry is.
  public var facts: EntryFacts
  /// The marks on the entry and on directories above it, by depth; 0 is the container's root.
  public var marks: [Int: MarkSet]
  /// The names that directories above the entry hold, by depth.
  public var siblings: [Int: SiblingSet]

  /// Makes a query.
  public init(
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

  /// Makes a query of a path with slashes between its names.
  public init(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil, path: String,
    facts: EntryFacts = EntryFacts(.file)
  ) {
    self.init(
      kind, app: app, group: group,
      path: path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }, facts: facts)
  }
}

extension Classifier {
  /// The state of the entry of a query, from the container's root down.
  public mutating func state(_ query: EntryQuery) -> State {
    var state = root(query.kind, app: query.app, group: query.group)
    for (depth, name) in query.path.enumerated() {
      if let marks = query.marks[depth] { state = marking(state, marks) }
      if let siblings = query.siblings[depth] { state = holding(state, siblings) }
      state = descend(state, name.span)
    }
    if let marks = query.marks[query.path.count] { state = marking(state, marks) }
    return state
  }

  /// The verdicts on the entry of a query.
  public mutating func verdicts(_ query: EntryQuery) -> Verdicts {
    verdicts(state(query), query.facts)
  }

  /// The state of an entry below one that is known, by a path with slashes between its names;
  /// empty names are passed over.
  public mutating func descend(_ state: State, path: Span<UInt8>) -> State {
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
