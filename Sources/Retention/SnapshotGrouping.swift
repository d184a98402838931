package import ArchiveStore

/// The properties by which snapshots are grouped. Rules apply to each group for itself.
package struct SnapshotGrouping: OptionSet, Hashable, Sendable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// The identity of the device.
  package static let device = SnapshotGrouping(rawValue: 1)
  /// The whole device, or the set of apps.
  package static let scope = SnapshotGrouping(rawValue: 2)
  /// The set of tags.
  package static let tags = SnapshotGrouping(rawValue: 4)

  private static let names: [(name: String, grouping: SnapshotGrouping)] = [
    ("device", .device), ("scope", .scope), ("tags", .tags), ("tag", .tags),
  ]

  /// Parses names separated by commas: `device`, `scope`, `tags`. The empty text groups by nothing.
  /// Returns nil for an unknown name.
  package init?(_ text: String) {
    self = []
    for name in text.split(separator: ",", omittingEmptySubsequences: true) {
      guard let found = Self.names.first(where: { $0.name == name }) else { return nil }
      insert(found.grouping)
    }
  }

  /// Returns the key of a snapshot's group.
  package func key(of head: SnapshotHead) -> Key {
    var key = Key()
    if contains(.device) { key.device = head.device.identity }
    if contains(.scope) { key.scope = head.scope.inOrder }
    if contains(.tags) { key.tags = Set(head.tags).sorted() }
    return key
  }
}

extension SnapshotGrouping {
  /// The properties that all snapshots of a group have in common; nil if they may differ.
  package struct Key: Hashable, Sendable {
    /// The identity of the device.
    package fileprivate(set) var device: String?
    /// The scope, with its apps in order.
    package fileprivate(set) var scope: Scope?
    /// The tags in order, each once.
    package fileprivate(set) var tags: [String]?
  }
}

extension Scope {
  /// The scope with its apps in order, each once.
  fileprivate var inOrder: Scope {
    guard case .apps(let apps) = self else { return self }
    return .apps(Set(apps).sorted())
  }
}
