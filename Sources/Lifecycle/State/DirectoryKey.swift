internal import Codecs
public import SystemIO

/// What names a directory of a source: made of its container's logical path and the names on the way.
public struct DirectoryKey: Hashable, Sendable {
  let digest: Digest

  /// The key of a container's root.
  public init(container path: ByteString) { digest = path.withSpan { Blake2b.hash($0) } }

  init(_ digest: Digest) { self.digest = digest }

  /// The key of a directory in this one.
  public func directory(_ name: ByteString) -> DirectoryKey {
    DirectoryKey(Blake2b.hash(digest.bytes + name.bytes))
  }

  /// The key of a file in this directory, of which the pieces are noted. No directory has it: a slash is in no
  /// name.
  public func file(_ name: ByteString) -> DirectoryKey {
    DirectoryKey(Blake2b.hash(digest.bytes + name.bytes + [UInt8(ascii: "/")]))
  }
}
