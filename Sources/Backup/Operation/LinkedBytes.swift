internal import ArchiveStore
internal import PolicyEngine
internal import SystemIO

/// The bytes of hard-linked files in a snapshot. Each file counts once, in the class of its first
/// name in the order of the tree, as for a reader that walks the snapshot.
struct LinkedBytes {
  private var first: [File: Name] = [:]

  /// A file. Names that were read with different sizes are restored as separate files.
  private struct File: Hashable {
    let identity: FileIdentity
    let size: UInt64
  }

  private struct Name {
    let path: ByteString
    let dataClass: DataClass
  }

  /// Records a name of a file.
  mutating func note(
    _ identity: FileIdentity, size: UInt64, at path: ByteString, _ dataClass: DataClass
  ) {
    let file = File(identity: identity, size: size)
    if let known = first[file], !path.isBeforeInTree(known.path) { return }
    first[file] = Name(path: path, dataClass: dataClass)
  }

  /// Adds each file to the total of its class; returns the sum.
  func add(to totals: inout [DataClass: Totals.Class]) -> UInt64 {
    for (file, name) in first { totals[name.dataClass]?.bytes.addClamping(file.size) }
    return first.keys.lazy.map(\.size).clampedSum
  }
}

extension ByteString {
  /// Whether a walk of the tree visits this path first: entries in a directory precede those beside
  /// it, so `a/b` precedes `a.b`.
  fileprivate func isBeforeInTree(_ other: ByteString) -> Bool {
    bytes.lexicographicallyPrecedes(other.bytes) { left, right in
      Self.rank(left) < Self.rank(right)
    }
  }

  /// Names contain no NUL, so a slash can rank as one.
  private static func rank(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "/") ? 0 : byte }
}
