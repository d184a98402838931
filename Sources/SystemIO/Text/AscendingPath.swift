/// A path that is built from its last name to its first, as for a tree whose entries know only
/// their directories. Names need no array each: the path of an entry can have thousands.
public struct AscendingPath {
  @usableFromInline var reversed: [UInt8] = []

  public init() {}

  /// Adds the name of the directory above.
  @inlinable public mutating func prepend(_ name: Span<UInt8>) {
    if !reversed.isEmpty { reversed.append(ByteString.slash) }
    for offset in stride(from: name.count - 1, through: 0, by: -1) {
      reversed.append(name[offset])
    }
  }

  /// The path, empty without names.
  public var path: ByteString {
    var bytes = reversed
    bytes.reverse()
    return ByteString(bytes)
  }
}
