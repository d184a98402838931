internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The containers of a source whose paths are logical paths, in the order of the tree.
struct ImportedContainers {
  private(set) var found: [LogicalContainer] = []
  /// The components of the last container's path.
  private var open: [ByteString]?
  /// The number of containers that are not listed.
  private var others = 0

  /// The maximum number of containers that are listed, since a stranger wrote their names.
  static let limit = 10_000

  /// Adds the container of a path, which follows the earlier ones in tree order.
  mutating func add(_ path: [ByteString]) {
    if let open, path.starts(with: open) { return }
    guard let location = try? LogicalPath(ByteString(joining: path)).location else { return }
    open = location.container.prefix.components
    if found.count < Self.limit { found.append(location.container) } else { others += 1 }
  }

  /// Records that containers are not listed, so that no restore into a device finds them.
  func noteOthers(in skipped: inout SkippedEntries) {
    guard others > 0 else { return }
    skipped.append(
      path: "apps",
      reason: "the snapshot lists \(Self.limit) containers; \(others) more are restored only to a "
        + "directory", isPropertyOnly: true)
  }

  /// Returns a record for each app that the source lists or that has a container, ordered by
  /// identifier.
  func appRecords(with apps: [ForeignApp]) -> [AppRecord] {
    var containers: [ByteString: [ByteString]] = [:]
    for container in found {
      guard let app = container.app, app.instance == nil else { continue }
      containers[app.identifier, default: []].append(container.prefix)
    }
    let known = Dictionary(
      apps.map { ($0.identifier, $0) }, uniquingKeysWith: { first, _ in first })
    return Set(known.keys).union(containers.keys).sorted().map { identifier in
      AppRecord(
        identifier: identifier.description, version: known[identifier]?.version,
        build: known[identifier]?.build, containers: containers[identifier] ?? [])
    }
  }

  /// Returns the name of the revision that a container has the data of, or nil for other kinds.
  static func revision(of container: LogicalContainer, in apps: [ForeignApp]) -> String? {
    switch container {
    case .revision(let name), .systemRevision(let name):
      apps.first { $0.identifier == name.identifier }?.revision
    default: nil
    }
  }
}
