package import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
package import SystemIO

/// The present or future location of each container of a snapshot on a device. Containers are found
/// by their logical names, whatever their UUIDs on the device.
struct ContainerTargets {
  /// The target of one container.
  struct Target {
    let record: DeviceRecord.Container
    let logical: LogicalContainer
    let action: PlannedPart.Action
    /// The container's directory, or the directory of a container that is one file.
    let path: ByteString
    /// The device's container; nil if it has none.
    let present: Container?
    /// Why nothing in the container can be restored; nil if it can.
    var obstacle: String?
  }

  private let request: DeviceRestoreRequest
  private let snapshot: SnapshotID
  /// The apps that are installed now or after this restore.
  private var installed: Set<ByteString>
  private let units = UnitDirectories()

  init(_ request: DeviceRestoreRequest, of snapshot: SnapshotID, restored: [LogicalContainer]) {
    (self.request, self.snapshot) = (request, snapshot)
    installed = Set(request.device.apps.filter(\.isInstalled).map(\.identifier.bytes))
    for case .bundle(let app) in restored { installed.insert(app.identifier) }
  }

  /// Returns the target of a container; nil if the device has no location for its kind.
  ///
  /// - Throws: `damaged` if no backup writes such a record.
  func target(of record: DeviceRecord.Container, _ logical: LogicalContainer) throws -> Target? {
    try requireForm(of: record, logical)
    if let present = request.device.container(logical) {
      let isMissing =
        logical.kind == .folder && (try? Directory.open(resolved: present.absolutePath)) == nil
      return Target(
        record: record, logical: logical, action: isMissing ? .make : .merge,
        path: present.absolutePath, present: present)
    }
    if mustWait(logical) {
      let path = SafeHarbor.path(for: logical.prefix, root: request.device.root)
      return Target(record: record, logical: logical, action: .harbor, path: path, present: nil)
    }
    guard let location = try location(of: record, logical) else { return nil }
    if let obstacle = try obstacle(at: location, for: logical.kind) {
      return Target(
        record: record, logical: logical, action: .merge, path: location.path, present: nil,
        obstacle: obstacle)
    }
    if let link = try link(at: location) {
      throw OperationError(
        .failed, code: .danglingTarget,
        "restore", subject: record.path,
        reason: "its location '\(location.path)' is a link to '\(link.target)', "
          + (link.isDangling ? "which does not exist" : "which is not followed"),
        hint: link.isDangling
          ? "create the target of the link, or remove the link"
          : "remove the link; 'sandboxctl apps' says why it is not followed")
    }
    let path = logical.kind.isOneFile ? location.parent : location.path
    return Target(record: record, logical: logical, action: .make, path: path, present: nil)
  }

  /// Returns the location of a new container. On its own device a container keeps its name, unless
  /// another container has taken that name since.
  private func location(
    of record: DeviceRecord.Container, _ logical: LogicalContainer
  ) throws -> ContainerLocation? {
    let device = request.device
    do throws(ModelError) {
      if let revision = record.revision {
        return try device.location(forNew: logical, named: ByteString(revision))
      }
      let old = record.uuid.map { ByteString($0) } ?? logical.instance
      guard request.isInPlace || logical.instance != nil, let old, old.isUUID,
        !device.containers.contains(where: { $0.uuid == old })
      else { return try device.location(forNew: logical, units: units) }
      return try device.location(forNew: logical, named: old, units: units)
    } catch { throw hostile(record, "its name: \(error.reason)") }
  }

  /// Refuses a record that no backup writes: an ID identifies only the content of a snapshot, and
  /// anyone with write access to the repository can create one.
  private func requireForm(of record: DeviceRecord.Container, _ logical: LogicalContainer) throws {
    if let uuid = record.uuid, !ByteString(uuid).isUUID {
      throw hostile(record, "its uuid '\(ByteString(uuid))' is not a UUID")
    }
    if case .revision = logical, let revision = record.revision,
      !ByteString(revision).isSnapRevision
    {
      throw hostile(record, "its revision '\(ByteString(revision))' is not a snap revision")
    }
  }

  private func hostile(_ record: DeviceRecord.Container, _ fault: String) -> StoreError {
    StoreError(
      .damaged, "restore the container", subject: record.path.description,
      reason: "in snapshot \(snapshot.hex.prefix(8)), \(fault)",
      hint: "'sandboxctl restore SNAP:PATH --to DIR' restores its files to a directory")
  }

  /// Whether data waits in the safe harbor for its app: if the policy says so and the app has an
  /// identifier.
  private func mustWait(_ logical: LogicalContainer) -> Bool {
    guard let app = logical.app, !app.identifier.isEmpty, logical.kind != .bundle else {
      return false
    }
    let terms = request.policy.containers[logical.kind]
    return terms?.restoreMissing == .safeHarbor && !installed.contains(app.identifier)
  }

  /// Returns why an existing entry in `~/.cache` or `/var/cache` is not treated as the container of
  /// that location; nil if there is none. A backup enters no mounts there (`CacheMount`) and, in
  /// `~/.cache`, no links (`XDGFinder`), so their content would be replaced without being saved.
  private func obstacle(
    at location: ContainerLocation, for kind: ContainerKind
  ) throws -> String? {
    let mounted = "another volume is mounted there in a directory of caches, and is not entered"
    if kind == .cache, request.device.layout == .systemd {
      let caches = request.device.root.appending("var/cache")
      return CacheMount.path(at: location.path, in: caches).map { _ in mounted }
    }
    guard kind == .cache, request.device.layout == .xdg,
      let parent = try? Directory.open(resolved: location.parent),
      let status = try parent.statusIfPresent(location.name)
    else { return nil }
    if status.kind == .symlink {
      return "it is a link to '\(try parent.target(of: location.name))' in a directory of caches, "
        + "and is not followed"
    }
    return status.isMountPoint ? mounted : nil
  }

  /// Returns a link at the location of a container that the device does not have: the link is
  /// dangling or is not followed.
  private func link(
    at location: ContainerLocation
  ) throws -> (target: ByteString, isDangling: Bool)? {
    guard let parent = try? Directory.open(resolved: location.parent),
      try parent.statusIfPresent(location.name)?.kind == .symlink
    else { return nil }
    let isDangling = (try? parent.statusFollowing(location.name)) == nil
    return (try parent.target(of: location.name), isDangling)
  }
}

extension DeviceRecord {
  /// The containers that no device can have, by their logical paths, with the reason: their names
  /// would be paths to other locations (SECURITY.md). A restore into a device refuses them; their
  /// contents can be restored to a plain directory.
  package var unusableContainers: [(path: ByteString, reason: String)] {
    containers.compactMap { record in
      record.fault(in: layout).map { (record.path, $0) }
    }
  }
}

extension DeviceRecord.Container {
  fileprivate func fault(in layout: String) -> String? {
    if layout == Layout.coreSimulator.rawValue, let uuid, !ByteString(uuid).isUUID {
      return "its uuid '\(ByteString(uuid))' is not a UUID"
    }
    if let revision, !ByteString(revision).isSnapRevision {
      return "its revision '\(ByteString(revision))' is not a snap revision"
    }
    guard let container = try? LogicalPath(path).location?.container else { return nil }
    for name in container.names where !name.identifier.isEmpty {
      if let fault = BundleIdentifier.fault(of: name.identifier) {
        return "its identifier '\(name.identifier)' is invalid: \(fault)"
      }
    }
    return nil
  }
}
