internal import SystemIO

/// Refusals of targets, and the working directory, which is never replaced.
extension RestoreTarget {
  /// Refuses a target that is, is in, or would be created in a protected directory.
  static func refuse(
    _ target: ByteString, in protected: Set<FileIdentity>
  ) throws(OperationError) {
    guard lies(nearestDirectory(target), in: protected) else { return }
    throw OperationError(
      .usage, "cannot restore to '\(target)': it is in the repository to restore from",
      hint: "choose a directory outside the repository")
  }

  /// Whether a directory is or contains this process's working directory. If it were replaced, this
  /// process and the shell that started it would remain in a deleted directory.
  static func isWorkingDirectory(_ directory: borrowing Directory) throws(SystemError) -> Bool {
    lies(".", in: [try directory.status().identity])
  }

  /// Returns the error for a file that would replace the working directory.
  static func notReplaced(_ target: ByteString) -> OperationError {
    OperationError(
      .usage,
      "cannot restore to '\(target)': the source is not a directory and would replace "
        + "the working directory",
      hint: "give the path of the file to create")
  }

  /// Whether a directory is one of several, or is at any depth in one. Paths do not decide it,
  /// because a link may lead there.
  private static func lies(_ path: ByteString, in some: Set<FileIdentity>) -> Bool {
    guard !some.isEmpty, let directory = try? Directory.open(path: path) else { return false }
    var way: ByteString = "."
    var below: FileIdentity?
    // The root directory is its own parent.
    while let here = try? directory.status(way).identity, here != below {
      if some.contains(here) { return true }
      below = here
      way = way.appending("..")
    }
    return false
  }

  /// Returns the path itself if the directory exists, or that of its nearest existing ancestor.
  private static func nearestDirectory(_ path: ByteString) -> ByteString {
    let isThere = (try? Directory.open(path: path)) != nil
    let next = above(path)
    // An inaccessible working directory is its own parent.
    return isThere || path.components.isEmpty || next == path ? path : nearestDirectory(next)
  }
}
