internal import SystemIO

/// Files without a name that only this user can read and that disappear with the process.
enum TemporaryFile {
  /// Creates a file in the directory of the variable TMPDIR (default: `/var/tmp`), or in `/tmp` if
  /// that is impossible.
  static func make() throws(SystemError) -> Descriptor {
    do {
      return try Directory.open(path: Host.environment("TMPDIR") ?? "/var/tmp").createUnnamed()
    } catch {
      return try Directory.open(path: "/tmp").createUnnamed()
    }
  }

  /// The error of writing such a file. If its volume is full, neither the source's nor the target's
  /// is meant.
  static func failure(
    _ error: SystemError, _ action: String, subject: ByteString
  ) -> InterchangeError {
    guard error.code == .noSpace || error.code == .quotaExceeded else {
      return InterchangeError(error, action, subject: subject)
    }
    let place = Host.environment("TMPDIR") ?? "/var/tmp"
    return InterchangeError(
      .system, action, subject: subject,
      reason: "'\(place)' has no room for temporary files: \(error.reason)",
      hint: "free space there, or set TMPDIR to a directory on another volume", cause: error)
  }
}
