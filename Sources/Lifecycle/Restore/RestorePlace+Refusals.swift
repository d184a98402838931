internal import SystemIO

/// Where nothing is restored to, and which folder is never exchanged for another.
extension RestorePlace {
  /// Refuses a target that is, lies in, or would appear in one of the folders that are protected.
  static func refuse(
    _ target: ByteString, in protected: Set<FileIdentity>
  ) throws(LifecycleError) {
    guard lies(nearestFolder(target), in: protected) else { return }
    throw LifecycleError(
      .usage, "cannot restore to '\(target)': it lies in the repository that is restored from",
      hint: "name a folder outside of the repository")
  }

  /// Whether a folder is the one that this process works in, or holds it. Whoever works there, as the
  /// shell that began it, would be left in a folder that is gone, were another put in its place.
  static func isWorkingFolder(_ folder: borrowing Folder) throws(SystemError) -> Bool {
    lies(".", in: [try folder.status().identity])
  }

  /// What is said where a file would replace that folder.
  static func notReplaced(_ target: ByteString) -> LifecycleError {
    LifecycleError(
      .usage,
      "cannot restore to '\(target)': what is asked for is no folder, and would take the place of the "
        + "one that you work in",
      hint: "name the file that it is to become")
  }

  /// Whether a folder is one of some, or lies in one, however deep: what it is called does not tell, as
  /// a link may lead there.
  private static func lies(_ path: ByteString, in some: Set<FileIdentity>) -> Bool {
    guard !some.isEmpty, let folder = try? Folder.open(path: path) else { return false }
    var way: ByteString = "."
    var below: FileIdentity?
    // The topmost folder is the one above itself.
    while let here = try? folder.status(way).identity, here != below {
      if some.contains(here) { return true }
      below = here
      way = way.appending("..")
    }
    return false
  }

  /// The path of the folder that is there, or of the lowest one above it that is.
  private static func nearestFolder(_ path: ByteString) -> ByteString {
    let isThere = (try? Folder.open(path: path)) != nil
    let next = above(path)
    // A working folder that cannot be opened is above itself.
    return isThere || path.components.isEmpty || next == path ? path : nearestFolder(next)
  }
}
