public import Codecs

/// What a blob is: it is found only as what it was stored as, so that a file with a tree's bytes
/// harms nothing.
public enum BlobKind: UInt8, Sendable, Hashable, CaseIterable, Comparable, BitwiseCopyable {
  /// Bytes of a file or of an extended attribute.
  case data = 0
  /// A page of a directory, or a directory's table of pages.
  case tree = 1
  /// A list of a large file's pieces.
  case list = 2

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The name of a blob: its kind and the BLAKE2b-256 of its bytes.
public struct BlobID: Hashable, Sendable, Comparable {
  public let kind: BlobKind
  public let digest: Digest

  /// Makes a name.
  public init(kind: BlobKind, digest: Digest) {
    self.kind = kind
    self.digest = digest
  }

  public static func < (left: Self, right: Self) -> Bool {
    left.kind == right.kind ? left.digest < right.digest : left.kind < right.kind
  }
}

extension BlobID: CustomStringConvertible {
  /// The kind and the hash, for messages.
  public var description: String { "\(kind) blob \(digest.hex)" }
}
