internal import SystemIO

/// The folder for copies that only this process needs: files without names.
enum SpoolFolder {
  /// Opens it. `cache` is the folder of caches, as `Host.cacheFolder`.
  static func open(cache: ByteString?) throws(SystemError) -> Folder {
    if let cache {
      do throws(SystemError) { return try Folder.open(path: cache) } catch {
        // No cache can be kept: the system's own place is as good.
      }
    }
    return try Folder.open(path: "/tmp")
  }
}
