import SystemIO

/// Another user's link in a path to a directory. Root does not follow it: the program would read or
/// write where the link's owner has no access.
struct ForeignLink: Equatable {
  let path: ByteString
  let owner: UInt32

  /// Returns the first such link in an absolute path if `user` is root; otherwise nil.
  static func first(in path: ByteString, for user: UInt32 = Host.userID) -> ForeignLink? {
    guard user == 0 else { return nil }
    var above: ByteString = "/"
    for name in path.components {
      guard let status = (try? Directory.open(path: above).statusIfPresent(name)) ?? nil else {
        return nil
      }
      let here = above.appending(name)
      if status.kind == .symlink, status.user != user {
        return ForeignLink(path: here, owner: status.user)
      }
      above = here
    }
    return nil
  }
}
