package import SystemIO

/// A mount in a directory of caches. It is not treated as a cache: its files may be precious, such
/// as those of a server, and a purge would delete them.
package enum CacheMount {
  /// Returns the mount at a path, or above it and below a directory of caches, or nil. The path
  /// need not exist.
  package static func path(at path: ByteString, in caches: ByteString) -> ByteString? {
    let top = Host.resolved(caches)
    var at = Host.resolved(path)
    while at != top, at.isWithin(top) {
      if (try? Directory.open(path: at).status().isMountPoint) ?? false { return at }
      at = at.parent
    }
    return nil
  }
}
