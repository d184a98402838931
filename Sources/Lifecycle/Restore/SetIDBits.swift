internal import SystemIO

/// The bits by which a program runs as its file's owner or group, and not as whoever runs it.
///
/// They come back only to the owner and the group that they were given for: else a repository could
/// have everybody run a program of its own as whoever restores.
enum SetIDBits {
  static let (user, group): (UInt16, UInt16) = (0o4000, 0o2000)
  static let all = user | group

  /// What an entry's permissions are on something of its kind that belongs to whom the status says.
  /// In a directory the group's bit only hands on the group.
  static func kept(
    _ permissions: UInt16, _ owner: UInt32, _ group: UInt32, on status: FileStatus
  ) -> UInt16 {
    let lost = (status.user == owner ? 0 : user) | (status.group == group ? 0 : Self.group)
    return permissions & ~(status.kind == .directory || lost == 0 ? lost : all)
  }
}
