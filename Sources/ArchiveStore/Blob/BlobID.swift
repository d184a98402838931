public import Codecs

/// The kind of a blob. A blob is found only by the kind it was stored as, so a file whose bytes
/// equal a tree's cannot be mistaken for a tree.
public enum BlobKind: UInt8, Sendable, Hashable, CaseIterable, Comparable, BitwiseCopyable {
  /// The content of a file, or the value of an extended attribute.
  case data = 0
  /// A page of a directory, or a directory's table of pages.
  case tree = 1
  /// A list of the pieces of a large file.
  case list = 2

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The id of a blob: its kind and the BLAKE2b-256 of its bytes.
public struct BlobID: Hashable, Sendable, Comparable {
  public let kind: BlobKind
  public let digest: Digest

  /// Creates an id.
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
