internal import Codecs
internal import SystemIO

/// The identity of a node: a hash of its snapshot and path. It is the same in each mount.
struct NodeKey: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// The number of the root of the file system, as FUSE defines it.
  static let rootNumber: UInt64 = 1

  private init(_ digest: Digest) {
    var bytes = digest.bytes[...]
    func next() -> UInt64 {
      (0..<8).reduce(0) { value, _ in value << 8 | UInt64(bytes.removeFirst()) }
    }
    high = next()
    low = next()
  }

  /// Creates the key of a view, for example the tree of a snapshot, from its kind and its subject.
  init(_ kind: String, _ subject: some Sequence<UInt8> = []) {
    self.init(Blake2b.hash(Array(kind.utf8) + [0] + subject))
  }

  /// Returns the key of a name in this directory.
  func child(_ name: ByteString) -> NodeKey { derived(0, name) }

  /// Returns the key of a hard-linked file in the view with this key. `state` distinguishes files that
  /// have one group but not one state, which no backup makes.
  func link(_ group: ByteString, state: UInt64) -> NodeKey {
    NodeKey(Blake2b.hash(prefix(1) + Self.bytes(state) + group.bytes))
  }

  private func derived(_ kind: UInt8, _ name: ByteString) -> NodeKey {
    NodeKey(Blake2b.hash(prefix(kind) + name.bytes))
  }

  private func prefix(_ kind: UInt8) -> [UInt8] { Self.bytes(high) + Self.bytes(low) + [kind] }

  private static func bytes(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }

  /// The preferred inode number: 63 bits, and none that FUSE reserves.
  var number: UInt64 { max(low >> 1, Self.rootNumber + 1) }
}
