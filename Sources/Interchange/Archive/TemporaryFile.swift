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
}
