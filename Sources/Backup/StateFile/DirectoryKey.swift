internal import Codecs
package import SystemIO

/// The identity of a directory in a source, derived from its container's logical path and the names
/// in its path.
package struct DirectoryKey: Hashable, Sendable {
  let digest: Digest

  /// Creates the key of a container's root.
  package init(container path: ByteString) { digest = path.withSpan { Blake2b.hash($0) } }

  init(_ digest: Digest) { self.digest = digest }

  /// Returns the key of a directory in this one.
  package func directory(_ name: ByteString) -> DirectoryKey {
    DirectoryKey(Blake2b.hash(digest.bytes + name.bytes))
  }

  /// Returns the key of a file in this directory whose pieces are recorded. No directory has that
  /// key, as names contain no slash.
  package func file(_ name: ByteString) -> DirectoryKey {
    DirectoryKey(Blake2b.hash(digest.bytes + name.bytes + [UInt8(ascii: "/")]))
  }
}
