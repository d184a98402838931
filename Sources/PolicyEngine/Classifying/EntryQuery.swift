public import SandboxModel

/// A query for the verdicts on an entry, given by its full path.
public struct EntryQuery: Sendable, Hashable {
  /// The kind of container.
  public var kind: ContainerKind
  /// The bundle identifier of the app that owns the container.
  public var app: String?
  /// The group identifier, for a group container.
  public var group: String?
  /// The names from the container's root to the entry; empty for the root itself.
  public var path: [[UInt8]]
  /// The properties of the entry.
  public var facts: EntryFacts
  /// The marks on the entry and on its parent directories, by depth; 0 is the container's root.
  public var marks: [Int: MarkSet]
  /// The sibling names in the parent directories, by depth.
  public var siblings: [Int: SiblingSet]

  /// Creates a query.
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

  /// Creates a query from a path with its names separated by slashes.
  public init(
    _ kind: ContainerKind, app: String? = nil, group: String? = nil, path: String,
    facts: EntryFacts = EntryFacts(.file)
  ) {
    self.init(
      kind, app: app, group: group,
      path: path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }, facts: facts)
  }
}
