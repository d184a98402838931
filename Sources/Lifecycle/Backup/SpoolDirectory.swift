internal import SystemIO

/// The directory for copies that only this process needs: files without names.
enum SpoolDirectory {
  /// Where files outlast a restart, and so are not in memory as they often are in `/tmp`: a database may
  /// be larger than that (Filesystem Hierarchy Standard 3.0, 5.15).
  static let fallback: ByteString = "/var/tmp"

  /// Opens the directory of caches, which is made where it is missing, or where no cache can be kept the
  /// system's own place.
  ///
  /// - Parameter cache: the directory of caches, as `Host.cacheDirectory`.
  static func open(cache: ByteString?) throws(SystemError) -> Directory {
    if let cache, let directory = try? Directory.make(path: cache, permissions: 0o700) {
      return directory
    }
    return try Directory.open(path: fallback)
  }
}
