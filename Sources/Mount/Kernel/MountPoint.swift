internal import CFuse
package import SystemIO

/// The directory on which a file system is mounted.
package struct MountPoint: Sendable {
  /// The absolute path without links.
  package let path: ByteString
  private let identity: FileIdentity

  /// Checks that a directory can be mounted on: it exists, is empty, and is not a mount point.
  ///
  /// - Throws: `OperationError` of the kind `usage`.
  package init(_ given: ByteString) throws(OperationError) {
    do throws(SystemError) {
      path = try Host.realPath(given)
    } catch { throw Self.refusal(given, error) }
    let (status, isEmpty): (FileStatus, Bool)
    do throws(SystemError) {
      let directory = try Directory.open(resolved: path)
      (status, isEmpty) = (try directory.status(), try directory.isEmpty())
    } catch { throw Self.refusal(given, error) }
    if status.isMountPoint {
      throw Self.refusal(
        given, "it is already a mount", hint: "name another directory, or unmount it")
    }
    if !isEmpty {
      throw Self.refusal(given, "it is not empty", hint: "name an empty directory")
    }
    identity = status.identity
  }

  /// Opens the directory to mount on it. Another user may be able to replace it, or a directory
  /// above it, after it was checked.
  ///
  /// - Throws: `OperationError` if another directory or a link is there, or if it has entries.
  func open() throws(OperationError) -> Directory {
    do throws(SystemError) {
      let directory = try Directory.open(resolved: path)
      guard try directory.status().identity == identity, try directory.isEmpty() else {
        throw SystemError.replaced(path)
      }
      return directory
    } catch { throw Self.refusal(path, error) }
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
