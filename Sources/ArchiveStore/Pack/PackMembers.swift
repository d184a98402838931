internal import Codecs
internal import SystemIO

/// The names of a pack's members (docs/repository-format.md, "Pack").
enum PackMembers {
  private static let parts: ByteString = ".sandboxctl/parts"
  private static let values: ByteString = ".sandboxctl/values"
  private static let trees: ByteString = ".sandboxctl/trees"
  /// The number of digits of an offset.
  private static let digits = 16

  /// Returns the name of a part of a file, which begins at an offset of it.
  static func part(of path: ByteString, at offset: UInt64) -> ByteString {
    let digits = String(offset, radix: 16)
    let name = String(repeating: "0", count: Self.digits - digits.utf8.count) + digits
    return parts.appending(path).appending(ByteString(name))
  }

  /// Returns the file of a member and the offset in it: for a part those in its name, for any other
  /// member the member itself.
  static func location(of member: ByteString) -> (path: ByteString, offset: UInt64) {
    let components = member.components
    guard member.isWithin(parts), components.count > 3,
      let digits = components[components.count - 1].utf8,
      let offset = UInt64(digits, radix: 16)
    else { return (member, 0) }
    return (ByteString(joining: components[2..<(components.count - 1)]), offset)
  }

  /// Whether two members are parts of one file: their names differ only in the offset.
  static func arePartsOfOneFile(_ one: Span<UInt8>, _ other: Span<UInt8>) -> Bool {
    guard one.count == other.count, one.count > parts.count + digits else { return false }
    let file = 0..<(one.count - digits)
    return parts.withSpan { $0.hasSameBytes(as: one.extracting(0..<parts.count)) }
      && one.extracting(file).hasSameBytes(as: other.extracting(file))
  }

  /// Returns the member of a blob other than file content: a tree, a list, or an attribute value.
  static func single(_ blob: BlobID, size: Int) -> TarMember {
    let directory = blob.kind == .data ? values : trees
    return TarMember(
      path: Array(directory.appending(ByteString(blob.digest.hex)).bytes), size: size)
  }
}
