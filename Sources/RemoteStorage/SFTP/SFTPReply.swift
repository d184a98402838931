internal import SystemIO

/// An answer of a server (SFTP 7).
enum SFTPReply: Hashable, Sendable {
  case status(SFTPStatus)
  case handle(SFTPHandle)
  case data([UInt8])
  case names([SFTPName])
  case attributes(SFTPAttributes)
  /// The fields of an extension's answer, whose form depends on the request.
  case extended([UInt8])

  /// Whether it is the status of a successful request.
  var isSuccess: Bool {
    if case .status(let status) = self { status.code == .success } else { false }
  }
}

/// The result of a request that returns nothing else (SFTP 7).
struct SFTPStatus: Hashable, Sendable {
  let code: Code
  /// The server's own words, at most `messageLimit` bytes.
  let message: ByteString

  /// The number of bytes of a server's message that are kept.
  static let messageLimit = 512

  /// The reason for a failure. Other codes of the protocol count as `failure`.
  enum Code: UInt32, Hashable, Sendable {
    case success = 0
    case endOfFile = 1
    case noSuchFile = 2
    case permissionDenied = 3
    case failure = 4
    case badMessage = 5
    case unsupported = 8
  }
}

/// An entry of a directory, with the attributes that the server read without following a link.
struct SFTPName: Hashable, Sendable {
  let name: ByteString
  let attributes: SFTPAttributes
}

/// The attributes of a file (SFTP 5). A server omits those that it does not know.
struct SFTPAttributes: Hashable, Sendable {
  var size: UInt64?
  /// The type and the permissions, as in `st_mode` of stat(2).
  var mode: UInt32?
  /// The time of the last write in seconds since 1970.
  var modified: UInt32?
  /// The user ID of the owner, on the server.
  var owner: UInt32?

  static let hasSize: UInt32 = 0x0000_0001
  static let hasPermissions: UInt32 = 0x0000_0004

  /// The types of files that are distinguished (`S_IFMT` of inode(7)).
  enum Kind: Hashable, Sendable {
    case file, directory, link, other
    /// The server does not report it.
    case unknown
  }

  /// The type of the file.
  var kind: Kind {
    guard let mode, mode & 0o170000 != 0 else { return .unknown }
    return switch mode & 0o170000 {
    case 0o100000: .file
    case 0o040000: .directory
    case 0o120000: .link
    default: .other
    }
  }
}

/// The first answer of a server (SFTP 4).
struct SFTPVersion: Hashable, Sendable {
  let number: UInt32
  let extensions: Set<SFTPExtension>
}

/// The OpenSSH extensions that are used if a server offers them.
enum SFTPExtension: String, CaseIterable, Hashable, Sendable {
  case rename = "posix-rename@openssh.com"
  case sync = "fsync@openssh.com"
  case space = "statvfs@openssh.com"
  case limits = "limits@openssh.com"

  var name: ByteString { ByteString(rawValue) }
}

/// A packet that violates the protocol.
struct SFTPViolation: Error, Hashable, Sendable {
  let reason: String
}

/// A received packet.
enum SFTPPacket: Hashable, Sendable {
  case version(SFTPVersion)
  case reply(id: UInt32, SFTPReply)
}

// MARK: - Decoding

extension SFTPPacket {
  /// Decodes a packet without its length. Memory is used only for bytes that were received.
  init(_ bytes: ArraySlice<UInt8>) throws(SFTPViolation) {
    var reader = SFTPPacketReader(bytes)
    let type = try reader.byte()
    if type == 2 {
      self = .version(try SFTPVersion(&reader))
      return
    }
    let id = try reader.number()
    switch type {
    case 101: self = .reply(id: id, .status(try SFTPStatus(&reader)))
    case 102: self = .reply(id: id, .handle(try SFTPHandle(&reader)))
    case 103: self = .reply(id: id, .data(Array(try reader.string())))
    case 104: self = .reply(id: id, .names(try SFTPName.all(&reader)))
    case 105: self = .reply(id: id, .attributes(try SFTPAttributes(&reader)))
    case 201: self = .reply(id: id, .extended(Array(reader.rest())))
    default: throw SFTPViolation(reason: "it sent a packet of the unknown type \(type)")
    }
    // The draft has nothing after these fields, but a later server may add some.
  }
}

extension SFTPVersion {
  fileprivate init(_ reader: inout SFTPPacketReader) throws(SFTPViolation) {
    number = try reader.number()
    var found: Set<SFTPExtension> = []
    while !reader.isAtEnd {
      let name = try reader.string()
      _ = try reader.string()
      guard
        let known = SFTPExtension.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name) })
      else { continue }
      found.insert(known)
    }
    extensions = found
  }
}

extension SFTPStatus {
  fileprivate init(_ reader: inout SFTPPacketReader) throws(SFTPViolation) {
    code = Code(rawValue: try reader.number()) ?? .failure
    // Servers of earlier drafts send no message.
    message = reader.isAtEnd ? "" : ByteString(try reader.string().prefix(Self.messageLimit))
  }
}

extension SFTPHandle {
  fileprivate init(_ reader: inout SFTPPacketReader) throws(SFTPViolation) {
    bytes = Array(try reader.string())
    guard (1...256).contains(bytes.count) else {
      throw SFTPViolation(reason: "it sent a handle of \(bytes.count) bytes")
    }
  }
}

extension SFTPName {
  fileprivate static func all(_ reader: inout SFTPPacketReader) throws(SFTPViolation) -> [SFTPName]
  {
    let count = try reader.number()
    var names: [SFTPName] = []
    for _ in 0..<count {
      let name = ByteString(try reader.string())
      // The line of a listing for people.
      _ = try reader.string()
      names.append(SFTPName(name: name, attributes: try SFTPAttributes(&reader)))
    }
    return names
  }
}

extension SFTPAttributes {
  fileprivate init(_ reader: inout SFTPPacketReader) throws(SFTPViolation) {
    let flags = try reader.number()
    size = flags & Self.hasSize != 0 ? try reader.long() : nil
    if flags & 0x2 != 0 {
      owner = try reader.number()
      _ = try reader.number()
    }
    mode = flags & Self.hasPermissions != 0 ? try reader.number() : nil
    if flags & 0x8 != 0 {
      _ = try reader.number()
      modified = try reader.number()
    }
    guard flags & 0x8000_0000 != 0 else { return }
    for _ in 0..<(try reader.number()) {
      _ = try reader.string()
      _ = try reader.string()
    }
  }
}

/// Reads the fields of a packet.
struct SFTPPacketReader {
  private var bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  var isAtEnd: Bool { bytes.isEmpty }

  private mutating func take(_ count: Int) throws(SFTPViolation) -> ArraySlice<UInt8> {
    guard count <= bytes.count else {
      throw SFTPViolation(reason: "it sent a packet that ends within a field")
    }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }

  mutating func byte() throws(SFTPViolation) -> UInt8 {
    guard let first = bytes.first else { throw SFTPViolation(reason: "it sent an empty packet") }
    bytes = bytes.dropFirst()
    return first
  }

  mutating func number() throws(SFTPViolation) -> UInt32 {
    try take(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  mutating func long() throws(SFTPViolation) -> UInt64 {
    try take(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func string() throws(SFTPViolation) -> ArraySlice<UInt8> {
    try take(Int(try number()))
  }

  mutating func rest() -> ArraySlice<UInt8> {
    defer { bytes = bytes.dropFirst(bytes.count) }
    return bytes
  }
}

// MARK: - Framing

/// Cuts a stream of bytes into packets.
///
/// It holds at most one packet and the bytes of one read: a length is refused before memory is used
/// for it.
struct SFTPFrames {
  /// The maximum length of a packet in bytes: that of OpenSSH, which no server exceeds if at most
  /// `SFTPLimits.pieceLimit` bytes are requested.
  static let packetLimit = 256 << 10

  private var buffer: [UInt8] = []
  private var start = 0

  /// Adds bytes that were read.
  mutating func append(_ bytes: ArraySlice<UInt8>) {
    if start > 0 {
      buffer.removeFirst(start)
      start = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// Returns the next whole packet without its length, or nil if more bytes are needed.
  mutating func next() throws(SFTPViolation) -> ArraySlice<UInt8>? {
    let rest = buffer[start...]
    guard rest.count >= 4 else { return nil }
    let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    guard (1...Self.packetLimit).contains(length) else { throw Self.badLength(rest) }
    guard rest.count >= 4 + length else { return nil }
    start += 4 + length
    return rest.dropFirst(4).prefix(length)
  }

  /// Returns the error for a length that no packet has. It is text if the user's login shell prints
  /// something, which is the usual mistake.
  private static func badLength(_ bytes: ArraySlice<UInt8>) -> SFTPViolation {
    let text = bytes.prefix { (0x20...0x7e).contains($0) || $0 == 0x0a || $0 == 0x0d }
    guard text.count >= 4 else {
      return SFTPViolation(reason: "it sent a packet of an invalid length")
    }
    let shown = ByteString(text.prefix(80).prefix { $0 >= 0x20 })
    return SFTPViolation(reason: "it sent text instead of a packet: '\(shown)'")
  }
}

/// The limits of a server (`limits@openssh.com`), within those of this program.
struct SFTPLimits: Hashable, Sendable {
  /// The number of bytes to read or write with one request.
  var readPiece = Self.usualPiece
  var writePiece = Self.usualPiece

  /// The length that every server supports (SFTP 3).
  static let usualPiece = 32 << 10
  /// The maximum: a packet has 1 KiB for the other fields, as in OpenSSH.
  static let pieceLimit = (256 << 10) - 1024

  /// The limits of a server that does not report any.
  init() {}

  /// Decodes the answer: the lengths of a packet, a read and a write, and the number of handles. 0
  /// means no limit.
  init(_ fields: [UInt8]) throws(SFTPViolation) {
    var reader = SFTPPacketReader(fields[...])
    let packet = try reader.long()
    readPiece = Self.piece(try reader.long(), packet)
    writePiece = Self.piece(try reader.long(), packet)
  }

  private static func piece(_ length: UInt64, _ packet: UInt64) -> Int {
    let most = packet > 1024 ? packet - 1024 : UInt64(usualPiece)
    let piece = length == 0 ? most : min(length, packet == 0 ? length : most)
    return Int(clamping: min(max(piece, 1024), UInt64(pieceLimit)))
  }
}

extension VolumeSpace {
  /// Decodes the answer to `statvfs@openssh.com`.
  init(statvfs fields: [UInt8]) throws(SFTPViolation) {
    var reader = SFTPPacketReader(fields[...])
    var numbers: [UInt64] = []
    for _ in 0..<8 { numbers.append(try reader.long()) }
    let block = numbers[1] == 0 ? numbers[0] : numbers[1]
    self.init(
      available: Self.product(numbers[4], block), total: Self.product(numbers[2], block),
      availableInodes: numbers[7])
    countsInodes = numbers[5] > 0
  }

  private static func product(_ blocks: UInt64, _ size: UInt64) -> UInt64 {
    let (bytes, isTooMuch) = blocks.multipliedReportingOverflow(by: size)
    return isTooMuch ? .max : bytes
  }
}
