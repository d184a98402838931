internal import Codecs
public import SystemIO

/// What names a folder of a source: made of its container's logical path and the names on the way.
public struct FolderKey: Hashable, Sendable {
  let digest: Digest

  /// The key of a container's root.
  public init(container path: ByteString) { digest = path.withSpan { Blake2b.hash($0) } }

  init(_ digest: Digest) { self.digest = digest }

  /// The key of a folder in this one.
  public func folder(_ name: ByteString) -> FolderKey {
    FolderKey(Blake2b.hash(digest.bytes + name.bytes))
  }

  /// The key of a file in this folder, of which the pieces are noted. No folder has it: a slash is in no
  /// name.
  public func file(_ name: ByteString) -> FolderKey {
    FolderKey(Blake2b.hash(digest.bytes + name.bytes + [UInt8(ascii: "/")]))
  }
}
