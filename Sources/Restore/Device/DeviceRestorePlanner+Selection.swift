internal import ArchiveStore
internal import Codecs
internal import SandboxModel
internal import SystemIO

/// The choice of the containers of a snapshot that a request restores into a device.
extension DeviceRestorePlanner {
  /// A container of the snapshot with the requested part of it.
  struct Item {
    let record: DeviceRecord.Container
    let logical: LogicalContainer
    let selection: ByteString
  }

  /// The groups to restore with a set of apps: those that no other app is known to share, or all
  /// with `--with-groups` (docs/restore.md, "Groups").
  ///
  /// The members of a group are those that the snapshot or the device knows.
  private struct GroupChoice {
    /// The apps of each group, and whether each membership is known rather than guessed.
    private var members: [ByteString: [String: Bool]] = [:]

    init(_ snapshot: Snapshot, _ device: Device) {
      for app in snapshot.apps {
        for group in app.groups {
          add(app.identifier, to: ByteString(group.identifier), isKnown: group.isKnown)
        }
      }
      for app in device.apps {
        for group in app.groups {
          add(app.identifier.description, to: group.group.bytes, isKnown: group.isKnown)
        }
      }
    }

    private mutating func add(_ app: String, to group: ByteString, isKnown: Bool) {
      let before = members[group]?[app] ?? false
      members[group, default: [:]][app] = before || isKnown
    }

    /// Returns the decision about a group if a set of apps is restored; `.none` if it is not
    /// theirs.
    func decide(_ group: ByteString, for apps: [String], withAll: Bool) -> Decision {
      let members = members[group] ?? [:]
      guard apps.contains(where: { members[$0] != nil }) else { return .none }
      let known = Set(members.filter(\.value).keys)
      if withAll || !known.isEmpty && known.isSubset(of: apps) { return .restore }
      return .leave(members.keys.filter { !apps.contains($0) }.sorted())
    }

    enum Decision: Equatable {
      /// The group belongs to none of the apps.
      case none
      case restore
      /// The group is kept because these apps share it, or because its members are only guessed.
      case leave([String])
    }
  }

  /// Returns the containers that the snapshot's tree has or may have: a container behind a damaged
  /// directory is reported if it is requested.
  func heldContainers() throws -> [DeviceRecord.Container] {
    try snapshot.device.containers.filter { record in
      do throws(StoreError) {
        return try reader.entry(at: record.path, in: snapshot.tree)?.isDirectory ?? false
      } catch {
        guard error.kind == .damaged else { throw error }
        return true
      }
    }.sorted { $0.path < $1.path }
  }

  /// Returns the requested containers, and the groups that are kept unchanged.
  ///
  /// - Throws: `notFound` if the snapshot has nothing of the request.
  func items(
    of held: [DeviceRecord.Container]
  ) throws -> (items: [Item], leftGroups: [DeviceRestorePlan.LeftGroup]) {
    let groups = GroupChoice(snapshot, request.device)
    var found: [Item] = []
    var left: [DeviceRestorePlan.LeftGroup] = []
    for record in held {
      guard let logical = try? LogicalPath(record.path).location?.container else { continue }
      if request.leavesData, logical.kind != .bundle { continue }
      if request.apps.isEmpty {
        if let selection = selection(in: record.path) {
          found.append(Item(record: record, logical: logical, selection: selection))
        }
      } else if isOfApps(record, logical: logical, groups: groups, left: &left) {
        found.append(Item(record: record, logical: logical, selection: ""))
      }
    }
    if found.isEmpty { throw nothingFound() }
    let inner = found.first?.selection ?? ""
    if !inner.isEmpty { _ = try reader.source(request.path, in: stored) }
    return (found, left)
  }

  /// Returns the part of a container that the requested path selects: empty for all of it, nil for
  /// none.
  private func selection(in container: ByteString) -> ByteString? {
    if container.isWithin(request.path) { return "" }
    guard request.path.isWithin(container) else { return nil }
    return request.path.relative(to: container)
  }

  /// Whether a path that the snapshot lacks belongs to the requested apps. Containers that could
  /// not be read at all are not among the found ones.
  func isRequested(_ path: ByteString, with found: [Item]) -> Bool {
    request.apps.isEmpty
      || request.apps.contains { path.subject == ByteString("apps").appending(ByteString($0)) }
      || found.contains { path.isWithin($0.record.path) || $0.record.path.isWithin(path) }
  }

  private func isOfApps(
    _ record: DeviceRecord.Container, logical: LogicalContainer, groups: GroupChoice,
    left: inout [DeviceRestorePlan.LeftGroup]
  ) -> Bool {
    guard case .group(let name) = logical else {
      guard let app = logical.app?.identifier.utf8 else { return false }
      return request.apps.contains(app)
    }
    switch groups.decide(name.identifier, for: request.apps, withAll: request.withGroups) {
    case .none: return false
    case .restore: return true
    case .leave(let sharers):
      left.append(DeviceRestorePlan.LeftGroup(path: record.path, sharers: sharers))
      return false
    }
  }

  private func nothingFound() -> OperationError {
    let what =
      request.apps.isEmpty
      ? "'\(request.path)'" : request.apps.map { "'\(ByteString($0))'" }.joined(separator: ", ")
    let id = String(stored.id.hex.prefix(8))
    return OperationError(
      .notFound, code: .pathNotInSnapshot, "cannot restore \(what): not found in snapshot \(id)",
      hint: "'sandboxctl ls \(id) --recursive' lists its paths")
  }
}
