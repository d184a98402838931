/// The lines of a header ("ABNF definition of file header"). Any deviation is an error.
struct AgeHeaderParser {
  static let versionLine = Array("age-encryption.org/v1\n".utf8)
  private static let versionPrefix = Array("age-encryption.org/".utf8)
  /// The bytes of the last line: `--- `, 43 characters and a line feed.
  static let macLineCount = 48

  private let bytes: [UInt8]
  /// The offset of the next line.
  private(set) var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Parses the first line.
  mutating func parseVersion() throws(AgeError) {
    guard bytes.starts(with: Self.versionPrefix) else {
      throw AgeError(.header, "it does not begin like an age file")
    }
    let line = try nextLine()
    guard line.count == Self.versionLine.count - 1, bytes.starts(with: Self.versionLine) else {
      throw AgeError(.header, "it is not version 1 of the format")
    }
  }

  /// Parses a stanza, or returns nil at the line of the MAC.
  mutating func parseStanza() throws(AgeError) -> AgeStanza? {
    if bytes[offset...].starts(with: "---".utf8) { return nil }
    let line = try nextLine()
    guard line.starts(with: "-> ".utf8) else {
      throw AgeError(.header, "a line of the header is no stanza and no MAC")
    }
    let arguments = line.dropFirst(3)
      .split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard arguments.allSatisfy({ !$0.isEmpty && $0.allSatisfy { 0x21...0x7E ~= $0 } }) else {
      throw AgeError(.header, "an argument of a stanza is empty or not printable ASCII")
    }
    return try AgeStanza(
      arguments: arguments.map { String(decoding: $0, as: UTF8.self) }, body: try parseBody())
  }

  /// Parses lines of 64 characters and one that is shorter, each of which is Base64 of its own.
  private mutating func parseBody() throws(AgeError) -> [UInt8] {
    var body: [UInt8] = []
    while true {
      let line = try nextLine()
      guard line.count <= AgeHeader.columns, let part = Base64.decode(line, padded: false) else {
        throw AgeError(.header, "the body of a stanza is not canonical Base64 in lines of 64")
      }
      body += part
      if line.count < AgeHeader.columns { return body }
    }
  }

  /// Parses the line of the MAC.
  mutating func parseMAC() throws(AgeError) -> [UInt8] {
    let line = try nextLine()
    guard line.count == Self.macLineCount - 1, line.starts(with: "--- ".utf8),
      let mac = Base64.decode(line.dropFirst(4), padded: false)
    else { throw AgeError(.header, "the line of the MAC is not canonical") }
    return mac
  }

  /// Returns the next line without its line feed.
  private mutating func nextLine() throws(AgeError) -> ArraySlice<UInt8> {
    guard let end = bytes[offset...].firstIndex(of: UInt8(ascii: "\n")) else {
      let isLong = bytes.count >= AgeHeader.maximumCount
      throw AgeError(.header, isLong ? "the header exceeds 64 KiB" : "the header is truncated")
    }
    defer { offset = end + 1 }
    return bytes[offset..<end]
  }
}
