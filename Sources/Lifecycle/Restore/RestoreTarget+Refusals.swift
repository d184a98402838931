internal import SystemIO

/// Where nothing is restored to, and which directory is never exchanged for another.
extension RestoreTarget {
  /// Refuses a target that is, lies in, or would appear in one of the directories that are protected.
  static func refuse(
    _ target: ByteString, in protected: Set<FileIdentity>
  ) throws(LifecycleError) {
    guard lies(nearestDirectory(target), in: protected) else { return }
    throw LifecycleError(
      .usage, "cannot restore to '\(target)': it lies in the repository that is restored from",
      hint: "name a directory outside of the repository")
  }

  /// Whether a directory is the one that this process works in, or holds it. Whoever works there, as the
  /// shell that began it, would be left in a directory that is gone, were another put in its place.
  static func isWorkingDirectory(_ directory: borrowing Directory) throws(SystemError) -> Bool {
    lies(".", in: [try directory.status().identity])
  }

  /// What is said where a file would replace that directory.
  static func notReplaced(_ target: ByteString) -> LifecycleError {
    LifecycleError(
      .usage,
      "cannot restore to '\(target)': what is asked for is no directory, and would take the place of the "
        + "one that you work in",
      hint: "name the file that it is to become")
  }

  /// Whether a directory is one of some, or lies in one, however deep: what it is called does not tell, as
  /// a link may lead there.
  private static func lies(_ path: ByteString, in some: Set<FileIdentity>) -> Bool {
    guard !some.isEmpty, let directory = try? Directory.open(path: path) else { return false }
    var way: ByteString = "."
    var below: FileIdentity?
    // The topmost directory is the one above itself.
    while let here = try? directory.status(way).identity, here != below {
      if some.contains(here) { return true }
      below = here
      way = way.appending("..")
    }
    return false
  }

  /// The path of the directory that is there, or of the lowest one above it that is.
  private static func nearestDirectory(_ path: ByteString) -> ByteString {
    let isThere = (try? Directory.open(path: path)) != nil
    let next = above(path)
    // A working directory that cannot be opened is above itself.
    return isThere || path.components.isEmpty || next == path ? path : nearestDirectory(next)
  }
}
