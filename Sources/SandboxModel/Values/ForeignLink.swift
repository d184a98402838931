import SystemIO

/// A link of another user's on the way to a directory. Root follows none: it would read, or write, where
/// the user who made the link cannot.
struct ForeignLink: Equatable {
  let path: ByteString
  let owner: UInt32

  /// The first one on the way to an absolute path, for root; nil for other users.
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
