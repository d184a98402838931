internal import CSodium

/// The header of an age file: the file key, wrapped for each recipient ("Header").
///
/// A header is read without any key. `AgeFile` unwraps the file key with an identity and verifies
/// the MAC.
public struct AgeHeader: Sendable {
  /// The largest header that is read or written, in bytes. A recipient takes about 100.
  public static let maximumCount = 65_536
  /// The largest work factor of scrypt that is accepted by default: 2^20 takes 1 GiB of memory and
  /// some seconds.
  public static let maximumWorkFactor = 20
  /// The work factor of scrypt that `age` uses: 2^18 takes 256 MiB and about a second.
  public static let usualWorkFactor = 18
  /// The number of characters in a full line of a stanza's body.
  static let columns = 64

  /// The size of the header in bytes: the payload's nonce follows.
  public let count: Int
  /// The stanzas in their order.
  let stanzas: [AgeStanza]
  /// The bytes that the MAC authenticates: up to and including `---`.
  private let authenticated: [UInt8]
  private let mac: [UInt8]

  /// Parses the header at the beginning of a file, of which any number of bytes may follow.
  ///
  /// - Throws: `header` if the bytes are not a header of version 1, if they end before the header
  ///   does, or if it is larger than 64 KiB.
  public init(_ file: Span<UInt8>) throws(AgeError) {
    let known = Self.count(in: file) ?? min(file.count, Self.maximumCount)
    let bytes = (0..<known).map { file[$0] }
    var parser = AgeHeaderParser(bytes)
    try parser.parseVersion()
    var stanzas: [AgeStanza] = []
    while let stanza = try parser.parseStanza() { stanzas.append(stanza) }
    mac = try parser.parseMAC()
    count = parser.offset
    authenticated = Array(bytes[..<(count - AgeHeaderParser.macLineCount + 3)])
    self.stanzas = stanzas
    try checkCombination()
  }

  /// Returns the size of the header at the beginning of a file in bytes, or nil if the bytes do not
  /// include its end: the caller reads more, up to `maximumCount` bytes. The header may be invalid.
  public static func count(in prefix: Span<UInt8>) -> Int? {
    let mark = Array("\n---".utf8)
    var matched = 0
    for index in 0..<min(prefix.count, maximumCount) {
      let byte = prefix[index]
      if matched == mark.count {
        if byte == UInt8(ascii: "\n") { return index + 1 }
      } else if byte == mark[matched] {
        matched += 1
      } else {
        matched = byte == mark[0] ? 1 : 0
      }
    }
    return nil
  }

  /// A stanza of scrypt is the only one, because anyone who knows the passphrase is assumed to be
  /// the author ("scrypt recipient stanza").
  private func checkCombination() throws(AgeError) {
    guard !stanzas.isEmpty else { throw AgeError(.header, "the header has no recipient") }
    if hasPassphrase && stanzas.count > 1 {
      throw AgeError(.header, "a passphrase is not the only recipient")
    }
  }

  /// Whether the file is encrypted with a passphrase.
  public var hasPassphrase: Bool {
    stanzas.contains { if case .scrypt = $0 { true } else { false } }
  }

  // MARK: - Writing

  /// Returns a header with these stanzas.
  ///
  /// - Throws: `limit` if it were larger than 64 KiB.
  static func encode(
    _ stanzas: [AgeStanza], authenticatedBy key: borrowing AgeFileKey
  ) throws(AgeError) -> [UInt8] {
    precondition(!stanzas.isEmpty, "a header without recipients")
    var bytes = AgeHeaderParser.versionLine
    for stanza in stanzas { stanza.encode(to: &bytes) }
    bytes += Array("---".utf8)
    let mac = Base64.encode(key.headerMAC(of: bytes.span), padded: false)
    bytes += Array(" \(mac)\n".utf8)
    guard bytes.count <= maximumCount else {
      throw AgeError(.limit, "\(stanzas.count) recipients are too many for a header of 64 KiB")
    }
    return bytes
  }

  /// Verifies the MAC ("Header MAC").
  ///
  /// - Throws: `headerMAC` if it does not match the header.
  func verify(with key: borrowing AgeFileKey) throws(AgeError) {
    let right = key.headerMAC(of: authenticated.span)
    guard unsafe sodium_memcmp(right, mac, right.count) == 0 else {
      throw AgeError(.headerMAC, "the MAC of the header is wrong")
    }
  }
}

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
      throw AgeError(.header, "a line of the header is neither a stanza nor a MAC")
    }
    let arguments = line.dropFirst(3)
      .split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard arguments.allSatisfy({ !$0.isEmpty && $0.allSatisfy { 0x21...0x7E ~= $0 } }) else {
      throw AgeError(.header, "an argument of a stanza is empty or not printable ASCII")
    }
    return try AgeStanza(
      arguments: arguments.map { String(decoding: $0, as: UTF8.self) }, body: try parseBody())
  }

  /// Parses lines of 64 characters and a shorter one, each of which is Base64 by itself.
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
