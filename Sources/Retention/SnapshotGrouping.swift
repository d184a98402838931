package import ArchiveStore
internal import Codecs
package import SystemIO

/// The properties by which snapshots are grouped. Rules apply to each group separately.
package struct SnapshotGrouping: OptionSet, Hashable, Sendable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// The identity of the device.
  package static let device = SnapshotGrouping(rawValue: 1)
  /// The whole device, or the set of apps; for an import that names no device, the containers.
  package static let scope = SnapshotGrouping(rawValue: 2)
  /// The set of tags.
  package static let tags = SnapshotGrouping(rawValue: 4)
  /// The name of the host. Together with `device` it does not apply to devices with an identity
  /// of their own, such as the UDID of a phone, which several computers may back up.
  package static let host = SnapshotGrouping(rawValue: 8)

  /// The grouping without an option. Machines that were cloned share their machine ID, so only
  /// their names keep the rules from removing the snapshots of one for those of another.
  package static let standard: SnapshotGrouping = [.device, .host, .scope]

  private static let names: [(name: String, grouping: SnapshotGrouping)] = [
    ("device", .device), ("host", .host), ("scope", .scope), ("tags", .tags), ("tag", .tags),
  ]

  /// Parses names separated by commas: `device`, `host`, `scope`, `tags`. With an empty text, all
  /// snapshots form one group. Returns nil for an unknown name.
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
    if contains(.host), !contains(.device) || head.device.isOfMachine { key.host = head.host }
    if contains(.scope) {
      key.scope = head.scope.inOrder
      key.containers = head.importedContainers
    }
    if contains(.tags) { key.tags = Set(head.tags).sorted() }
    return key
  }
}

extension SnapshotGrouping {
  /// The properties that all snapshots of a group have in common; nil if they may differ.
  package struct Key: Hashable, Sendable {
    /// The identity of the device.
    package fileprivate(set) var device: String?
    /// The name of the host.
    package fileprivate(set) var host: String?
    /// The scope, with its apps in order.
    package fileprivate(set) var scope: Scope?
    /// The containers of an import that names no device, in order; nil for others.
    package fileprivate(set) var containers: [ByteString]?
    /// The tags in order, each once.
    package fileprivate(set) var tags: [String]?
    /// Whether this host accepts the snapshots.
    package internal(set) var isAccepted = true
  }
}

extension SnapshotHead {
  /// The containers of an import from a format that names no device, such as an .ipa or an Android
  /// backup; nil for other snapshots. Imports of the data of different apps, or of an app with and
  /// without its bundle, have the same source but do not replace each other.
  fileprivate var importedContainers: [ByteString]? {
    guard device.identity.hasPrefix("import:"), device.layout != "folder" else { return nil }
    return device.containers.map(\.path).sorted()
  }
}

extension Scope {
  /// The scope with its apps in order, each once.
  fileprivate var inOrder: Scope {
    guard case .apps(let apps) = self else { return self }
    return .apps(Set(apps).sorted())
  }
}
