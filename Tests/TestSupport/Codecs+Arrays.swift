package import Codecs

extension TarReader {
  /// Returns all members with their content, in the order of the archive.
  package static func members(
    of bytes: [UInt8], limits: Limits = Limits()
  ) throws(CodecError) -> [(member: TarMember, content: [UInt8])] {
    var members: [(TarMember, [UInt8])] = []
    try forEach(in: bytes.span, limits: limits) { members.append(($0, $1)) }
    return members
  }
}

extension TarWriter {
  /// Appends a complete member and returns the offset of its content in the buffer.
  @discardableResult
  package mutating func append(
    _ member: TarMember, content: [UInt8] = [], to buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    try append(member, content: content.span, to: &buffer)
  }
}

extension ZstdCompressor {
  /// Returns one frame of `content`, compressed with another method if one is given.
  package mutating func compress(
    _ content: [UInt8], by method: ZstdMethod? = nil
  ) throws(CodecError) -> [UInt8] {
    var frame: [UInt8] = []
    try compress(content.span, by: method, appendingTo: &frame)
    return frame
  }
}

extension YAML {
  /// Parses the only document of a text.
  package static func parse(
    _ text: String, limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    try parse(Array(text.utf8), limits: limits)
  }
}
