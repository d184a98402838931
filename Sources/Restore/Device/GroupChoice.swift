internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The groups to restore with a set of apps: those that no other app is known to share, or all with
/// `--with-groups` (docs/restore.md, "Groups").
///
/// The members of a group are those that the snapshot or the device knows.
struct GroupChoice {
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

  /// Returns the decision about a group if a set of apps is restored; `.none` if it is not theirs.
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
