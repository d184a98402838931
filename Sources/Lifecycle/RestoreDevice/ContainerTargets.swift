internal import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Where each container of a snapshot is on a device, or will be: found by its logical name, so
/// whatever its UUID is there.
struct ContainerTargets {
  /// Where one container comes to.
  struct Target {
    let record: ContainerRecord
    let logical: LogicalContainer
    let fate: PlannedPart.Fate
    /// The container's directory, or the directory that holds a container of one file.
    let path: ByteString
    /// The device's container, where it has it.
    let present: Container?
  }

  private let request: DeviceRestoreRequest
  private let snapshot: SnapshotID
  /// The apps that are there, or will be when this restore is done.
  private var installed: Set<ByteString>

  init(_ request: DeviceRestoreRequest, of snapshot: SnapshotID, restored: [LogicalContainer]) {
    (self.request, self.snapshot) = (request, snapshot)
    installed = Set(request.device.apps.filter(\.isInstalled).map(\.identifier.bytes))
    for case .bundle(let app) in restored { installed.insert(app.identifier) }
  }

  /// Where a container comes to; nothing where the device has no place for one of its kind.
  ///
  /// - Throws: `damaged` for a record by which no backup names a container.
  func target(of record: ContainerRecord, _ logical: LogicalContainer) throws -> Target? {
    try requireForm(of: record, logical)
    if let present = request.device.container(logical) {
      let isMissing =
        logical.kind == .folder && (try? Directory.open(resolved: present.absolutePath)) == nil
      return Target(
        record: record, logical: logical, fate: isMissing ? .make : .merge,
        path: present.absolutePath, present: present)
    }
    if mustWait(logical) {
      let path = SafeHarbor.path(for: logical.prefix, root: request.device.root)
      return Target(record: record, logical: logical, fate: .harbor, path: path, present: nil)
    }
    guard let place = try place(of: record, logical) else { return nil }
    if let link = try danglingLink(at: place) {
      throw LifecycleError(
        .failed,
        "cannot restore '\(record.path)': its place '\(place.path)' is a link to '\(link)', which "
          + "is not there", hint: "bring back what the link leads to, or remove the link")
    }
    let path = logical.kind == .settings ? place.parent : place.path
    return Target(record: record, logical: logical, fate: .make, path: path, present: nil)
  }

  /// Where a container is made. On its own device it comes back under its own name, unless another one
  /// has that by now.
  private func place(
    of record: ContainerRecord, _ logical: LogicalContainer
  ) throws -> ContainerLocation? {
    let device = request.device
    do throws(ModelError) {
      if let revision = record.revision {
        return try device.place(forNew: logical, named: ByteString(revision))
      }
      let old = record.uuid.map { ByteString($0) } ?? logical.instance
      guard request.isInPlace || logical.instance != nil, let old, old.isUUID,
        !device.containers.contains(where: { $0.uuid == old })
      else { return try device.place(forNew: logical) }
      return try device.place(forNew: logical, named: old)
    } catch { throw hostile(record, "its name: \(error.reason)") }
  }

  /// A snapshot is whose bytes its id names, and anybody who can write to the repository can make one:
  /// what it says of a container must be what a backup says.
  private func requireForm(of record: ContainerRecord, _ logical: LogicalContainer) throws {
    if let uuid = record.uuid, !ByteString(uuid).isUUID {
      throw hostile(record, "its uuid '\(ByteString(uuid))' is no UUID")
    }
    if case .revision = logical, let revision = record.revision,
      !ByteString(revision).isSnapRevision
    {
      throw hostile(record, "its revision '\(ByteString(revision))' is none that snapd gives")
    }
  }

  private func hostile(_ record: ContainerRecord, _ fault: String) -> StoreError {
    StoreError(
      .damaged, "restore from snapshot \(snapshot.hex.prefix(8)) the container",
      record.path.description, fault,
      hint: "'restore SNAP:PATH --to DIR' brings its files to a directory")
  }

  /// Whether data waits for its app: as the policy says, and only of an app that has a name.
  private func mustWait(_ logical: LogicalContainer) -> Bool {
    guard let app = logical.app, !app.identifier.isEmpty, logical.kind != .bundle else {
      return false
    }
    let terms = request.policy.containers[logical.kind]
    return terms?.restoreMissing == .safeHarbor && !installed.contains(app.identifier)
  }

  private func danglingLink(at place: ContainerLocation) throws -> ByteString? {
    guard let parent = try? Directory.open(resolved: place.parent),
      try parent.statusIfPresent(place.name)?.kind == .symlink
    else { return nil }
    return try parent.target(of: place.name)
  }
}

extension LogicalContainer {
  /// The name that tells it from others of one identifier.
  var name: LogicalName {
    switch self {
    case .bundle(let name), .data(let name), .settings(let name), .revision(let name),
      .systemData(let name), .systemRevision(let name), .oldRevision(let name, _),
      .oldSystemRevision(let name, _), .extension(let name, _), .group(let name),
      .folder(let name):
      name
    }
  }

  /// The UUID in its name, where the identifier alone does not name it.
  var instance: ByteString? { name.instance }
}
