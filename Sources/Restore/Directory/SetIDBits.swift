internal import SystemIO

/// The mode bits that run a program as its file's owner or group instead of as its user.
///
/// They are restored only if the file's owner and group are the stored ones; otherwise a repository
/// could make every user run its programs with the identity of the user who restores.
enum SetIDBits {
  static let (user, group): (UInt16, UInt16) = (0o4000, 0o2000)
  static let all = user | group

  /// Returns an entry's permissions on a file with the owner and the group of the status. On a
  /// directory the set-group-ID bit only passes on the group.
  static func kept(
    _ permissions: UInt16, owner: UInt32, group: UInt32, on status: FileStatus
  ) -> UInt16 {
    let lost = (status.user == owner ? 0 : user) | (status.group == group ? 0 : Self.group)
    return permissions & ~(status.kind == .directory || lost == 0 ? lost : all)
  }
}
