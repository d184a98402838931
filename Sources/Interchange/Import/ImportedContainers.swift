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
    let builds = Dictionary(
      apps.map { ($0.identifier, $0.build) }, uniquingKeysWith: { first, _ in first })
    return Set(builds.keys).union(containers.keys).sorted().map { identifier in
      AppRecord(
        identifier: identifier.description, build: builds[identifier] ?? nil,
        containers: containers[identifier] ?? [])
    }
  }
}
