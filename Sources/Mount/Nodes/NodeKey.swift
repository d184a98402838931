internal import Codecs
internal import SystemIO

/// The identity of a node: a hash of its snapshot and path, or the hash of its directory and its
/// position there. It is the same in each mount.
///
/// The numbers of the entries of a directory ascend in the order of their names, in which a backup
/// stores small files. cp(1) reads files in the order of their inode numbers.
struct NodeKey: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64
  /// The position in the directory plus one; 0 if the hash is that of the node itself.
  private let place: UInt64

  /// The number of the root of the file system, as FUSE defines it.
  static let rootNumber: UInt64 = 1

  private init(high: UInt64, low: UInt64, place: UInt64) {
    (self.high, self.low, self.place) = (high, low, place)
  }

  private init(_ digest: Digest) {
    var bytes = digest.bytes[...]
    func next() -> UInt64 {
      (0..<8).reduce(0) { value, _ in value << 8 | UInt64(bytes.removeFirst()) }
    }
    high = next()
    low = next()
    place = 0
  }

  /// Creates the key of a view, for example the tree of a snapshot, from its kind and its subject.
  init(_ kind: String, _ subject: some Sequence<UInt8> = []) {
    self.init(Blake2b.hash(Array(kind.utf8) + [0] + subject))
  }

  /// Returns the key from which the keys of this directory's entries are derived.
  func ofEntries() -> NodeKey {
    place == 0 ? self : NodeKey(Blake2b.hash(prefix(0) + Self.bytes(place)))
  }

  /// Returns the key of the entry at a position of a directory. This is the key of its entries.
  func entry(at position: UInt64) -> NodeKey {
    NodeKey(high: high, low: low, place: position + 1)
  }

  /// Returns the key of a hard-linked file in the view with this key. `state` distinguishes files
  /// that have one group but not one state, which no backup makes.
  func link(_ group: ByteString, state: UInt64) -> NodeKey {
    NodeKey(Blake2b.hash(prefix(1) + Self.bytes(state) + group.bytes))
  }

  private func prefix(_ kind: UInt8) -> [UInt8] { Self.bytes(high) + Self.bytes(low) + [kind] }

  private static func bytes(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }

  /// The preferred inode number: 63 bits, excluding those that FUSE reserves.
  var number: UInt64 { max((low >> 1 &+ place) & (UInt64.max >> 1), Self.rootNumber + 1) }
}
