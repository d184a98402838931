internal import CFuse
package import SystemIO

/// The directory on which a file system is mounted.
package struct MountPoint: Sendable {
  /// The absolute path without links.
  package let path: ByteString

  /// Checks that a directory can be mounted on: it exists, is empty, and is not a mount point.
  ///
  /// - Throws: `OperationError` of the kind `usage`.
  package init(_ given: ByteString) throws(OperationError) {
    do throws(SystemError) {
      path = try Host.realPath(given)
    } catch { throw Self.refusal(given, error) }
    try Self.require(path, given)
  }

  private static func require(_ path: ByteString, _ given: ByteString) throws(OperationError) {
    let (isMount, isEmpty): (Bool, Bool)
    do throws(SystemError) {
      let directory = try Directory.open(path: path)
      (isMount, isEmpty) = (try directory.status().isMountPoint, try directory.isEmpty())
    } catch { throw refusal(given, error) }
    if isMount {
      throw refusal(given, "it is already a mount", hint: "name another directory, or unmount it")
    }
    if !isEmpty {
      throw refusal(given, "it is not empty", hint: "name an empty directory")
    }
  }

  private static func refusal(_ path: ByteString, _ error: SystemError) -> OperationError {
    let word = ShellWord.text(path)
    if error.number == CF_ENOTCONN {
      return refusal(
        path, "a program that had mounted a file system there has ended without unmounting it",
        hint: "run 'fusermount3 -u \(word)'")
    }
    if error.isAbsent {
      return refusal(path, "there is no such directory", hint: "make it: mkdir \(word)")
    }
    return refusal(path, error.isMissing ? "it is not a directory" : error.reason, hint: error.hint)
  }

  static func refusal(
    _ path: ByteString, _ reason: String, hint: String? = nil
  ) -> OperationError {
    OperationError(
      .usage, code: .invalidTarget, "mount on", subject: path, reason: reason, hint: hint)
  }

  /// Checks that the directory is not inside another one and does not contain it. `noun` describes
  /// the other one, for example "the repository".
  package func requireOutside(_ other: ByteString, _ noun: String) throws(OperationError) {
    guard path.isWithin(other) || other.isWithin(path) else { return }
    throw Self.refusal(
      path, path.isWithin(other) ? "it is in \(noun) '\(other)'" : "it contains \(noun) '\(other)'",
      hint: "name a directory elsewhere")
  }
}
