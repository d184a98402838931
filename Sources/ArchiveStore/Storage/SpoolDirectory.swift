public import SystemIO

/// The directory for unnamed temporary files that only this process needs.
public enum SpoolDirectory {
  /// A directory whose files survive a restart (Filesystem Hierarchy Standard 3.0, 5.15) and are
  /// therefore on disk. `/tmp` is often in memory, and a database may be larger than memory.
  static let fallback: ByteString = "/var/tmp"

  /// Opens the cache directory, which is created if missing, or the system's temporary directory if
  /// no cache can be kept.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  public static func open(cache: ByteString?) throws(SystemError) -> Directory {
    if let cache, let directory = try? Directory.make(path: cache, permissions: 0o700) {
      return directory
    }
    return try Directory.open(path: fallback)
  }
}
