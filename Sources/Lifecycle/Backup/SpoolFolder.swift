internal import SystemIO

/// The folder for copies that only this process needs: files without names.
enum SpoolFolder {
  /// Where files outlast a restart, and so are not in memory as they often are in `/tmp`: a database may
  /// be larger than that (Filesystem Hierarchy Standard 3.0, 5.15).
  static let fallback: ByteString = "/var/tmp"

  /// Opens the folder of caches, which is made where it is missing, or where no cache can be kept the
  /// system's own place.
  ///
  /// - Parameter cache: the folder of caches, as `Host.cacheFolder`.
  static func open(cache: ByteString?) throws(SystemError) -> Folder {
    if let cache, let folder = try? Folder.make(path: cache, permissions: 0o700) { return folder }
    return try Folder.open(path: fallback)
  }
}
