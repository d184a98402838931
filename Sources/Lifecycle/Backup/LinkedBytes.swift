internal import ArchiveStore
internal import PolicyEngine
internal import SystemIO

/// The bytes of files that may have several names in a snapshot: each file counts once, in the class of
/// the first of its names in the order of the tree, as it does for whoever walks the snapshot.
struct LinkedBytes {
  private var first: [File: Name] = [:]

  /// A file; names that were read with another size are restored as files of their own.
  private struct File: Hashable {
    let identity: FileIdentity
    let size: UInt64
  }

  private struct Name {
    let path: ByteString
    let dataClass: DataClass
  }

  /// Notes a name of a file.
  mutating func note(
    _ identity: FileIdentity, size: UInt64, at path: ByteString, _ dataClass: DataClass
  ) {
    let file = File(identity: identity, size: size)
    if let known = first[file], !path.isBeforeInTree(known.path) { return }
    first[file] = Name(path: path, dataClass: dataClass)
  }

  /// Adds each file to the total of its class; gives the sum.
  func add(to totals: inout [DataClass: ClassTotal]) -> UInt64 {
    for (file, name) in first { totals[name.dataClass]?.bytes.addClamping(file.size) }
    return first.keys.lazy.map(\.size).clampedSum
  }
}

extension ByteString {
  /// Whether a walk of the tree comes here first: a directory's own come before what is beside it, and
  /// `a/b` before `a.b`.
  fileprivate func isBeforeInTree(_ other: ByteString) -> Bool {
    bytes.lexicographicallyPrecedes(other.bytes) { left, right in
      Self.rank(left) < Self.rank(right)
    }
  }

  /// No name holds a NUL.
  private static func rank(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "/") ? 0 : byte }
}
