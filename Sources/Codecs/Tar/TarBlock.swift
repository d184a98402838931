/// A header block of a tar archive.
enum TarBlock {
  /// The position of the checksum in a header.
  private static let checksum = 148..<156

  /// Whether the first block that is not zeros is a header: it has the right checksum.
  static func isHeader(firstOf blocks: [UInt8]) -> Bool {
    let size = TarMember.blockSize
    for start in stride(from: 0, through: blocks.count - size, by: size) {
      let block = blocks[start..<(start + size)]
      if block.contains(where: { $0 != 0 }) { return isHeader(block) }
    }
    return false
  }

  private static func isHeader(_ block: ArraySlice<UInt8>) -> Bool {
    let field = block.dropFirst(checksum.lowerBound).prefix(checksum.count)
    let digits = field.drop { $0 == 0x20 }.prefix { (0x30...0x37).contains($0) }
    // The checksum counts as spaces.
    let sum = block.reduce(0) { $0 + Int($1) } - field.reduce(0) { $0 + Int($1) }
    return Int(String(decoding: digits, as: UTF8.self), radix: 8) == sum + 0x20 * checksum.count
  }

  /// The maximum size of the prefix of a name in a header, in bytes.
  private static let prefixSize = 155

  /// Splits a name at a slash into the prefix and the name of a header. Returns nil if one of them
  /// does not fit.
  static func split(
    _ name: [UInt8]
  ) -> (prefix: ArraySlice<UInt8>, name: ArraySlice<UInt8>)? {
    if name.count <= TarMember.nameSize { return ([], name[...]) }
    let from = max(1, name.count - TarMember.nameSize - 1)
    guard let slash = name[from...].firstIndex(of: UInt8(ascii: "/")), slash <= prefixSize,
      slash + 1 < name.count
    else { return nil }
    return (name[..<slash], name[(slash + 1)...])
  }
}
