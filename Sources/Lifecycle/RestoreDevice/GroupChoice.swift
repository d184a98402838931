internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// Which groups come back with some apps: those that no other app is known to share, and all with
/// `--with-groups` (docs/restore.md, "Groups").
///
/// Who belongs to a group is what the snapshot and the device know together.
struct GroupChoice {
  /// By group: the apps, and whether that is known.
  private var members: [ByteString: [String: Bool]] = [:]

  init(_ snapshot: Snapshot, _ device: Device) {
    for app in snapshot.apps {
      for group in app.groups {
        add(app.identifier, ByteString(group.identifier), group.isKnown)
      }
    }
    for app in device.apps {
      for group in app.groups { add(app.identifier.description, group.group.bytes, group.isKnown) }
    }
  }

  private mutating func add(_ app: String, _ group: ByteString, _ isKnown: Bool) {
    let before = members[group]?[app] ?? false
    members[group, default: [:]][app] = before || isKnown
  }

  /// What becomes of a group when some apps are restored: nothing where it is none of theirs.
  func decide(_ group: ByteString, for apps: [String], withAll: Bool) -> Decision {
    let members = members[group] ?? [:]
    guard apps.contains(where: { members[$0] != nil }) else { return .none }
    let known = Set(members.filter(\.value).keys)
    if withAll || !known.isEmpty && known.isSubset(of: apps) { return .restore }
    return .leave(members.keys.filter { !apps.contains($0) }.sorted())
  }

  enum Decision: Equatable {
    /// The apps have nothing to do with it.
    case none
    case restore
    /// It stays, because of these apps, or because its members are only guessed.
    case leave([String])
  }
}
