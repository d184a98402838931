internal import CSodium

/// The public half of an X25519 identity: anyone who has it can encrypt, but not decrypt ("The
/// X25519 recipient type").
///
/// A host that writes backups it cannot read has recipients only.
public struct AgeRecipient: Hashable, Sendable, CustomStringConvertible {
  static let prefix = "age"
  private static let wrapInfo = "age-encryption.org/v1/X25519"

  /// The point on the curve, 32 bytes.
  let point: [UInt8]

  /// Parses the text `age1…`.
  ///
  /// - Throws: `key` for other text or a point of low order; `unsupported`, with the name of the
  ///   type, for recipients of plugins, tagged and post-quantum ones, and SSH keys.
  public init(_ text: String) throws(AgeError) {
    try AgeKeyType.refuseUnsupportedRecipient(text)
    let decoded = try Bech32(Array(text.utf8).span)
    try AgeKeyType.refusePlugin(prefix: decoded.prefix)
    guard decoded.prefix == Self.prefix else {
      throw AgeError(.key, "a recipient begins with 'age1' in lower case")
    }
    try self.init(point: decoded.data.withBytes { data in data.indices.map { data[$0] } })
  }

  /// Creates a recipient from its point.
  ///
  /// - Throws: `key` if it does not have 32 bytes or is of low order, so that its shared secrets
  ///   would be known to everyone.
  init(point: [UInt8]) throws(AgeError) {
    guard point.count == AgeStanza.shareCount else {
      throw AgeError(.key, "it has \(point.count) bytes instead of \(AgeStanza.shareCount)")
    }
    let probe = SecretBytes.random(count: AgeStanza.shareCount)
    guard X25519.multiply(probe, point) != nil else {
      throw AgeError(.key, "it is a point of low order")
    }
    self.point = point
  }

  /// The public half of a secret.
  init(of secret: borrowing SecretBytes) { point = X25519.base(secret) }

  /// The text `age1…`.
  public var description: String {
    Bech32.encode(point.span, prefix: Self.prefix).withBytes { text in
      String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }
  }

  /// Returns a stanza with the file key for this recipient, with a new ephemeral secret ("X25519
  /// recipient stanza").
  func wrap(_ key: borrowing AgeFileKey) -> AgeStanza {
    wrap(key, ephemeral: .random(count: AgeStanza.shareCount))
  }

  /// Returns a stanza with an ephemeral secret that MUST NOT be used twice.
  func wrap(_ key: borrowing AgeFileKey, ephemeral: consuming SecretBytes) -> AgeStanza {
    let share = X25519.base(ephemeral)
    guard let shared = X25519.multiply(ephemeral, point) else {
      preconditionFailure("a recipient is no point of low order")
    }
    return .x25519(share: share, body: key.wrapped(with: wrapKey(shared, share: share)))
  }

  /// Returns the key that wraps a file key.
  func wrapKey(_ shared: borrowing SecretBytes, share: [UInt8]) -> SecretBytes {
    HKDF.derive(from: shared, salt: share + point, info: Self.wrapInfo)
  }
}

/// X25519 of RFC 7748, section 5, by libsodium's `crypto_scalarmult`.
enum X25519 {
  /// Returns the point of a secret.
  static func base(_ secret: borrowing SecretBytes) -> [UInt8] {
    var point = [UInt8](repeating: 0, count: AgeStanza.shareCount)
    _ = unsafe secret.withPointer { unsafe crypto_scalarmult_base(&point, $0) }
    return point
  }

  /// Returns the secret that is shared with a point of 32 bytes, or nil if it would be zero because
  /// the point is of low order.
  static func multiply(_ secret: borrowing SecretBytes, _ point: [UInt8]) -> SecretBytes? {
    precondition(point.count == AgeStanza.shareCount, "a point has 32 bytes")
    var status: Int32 = -1
    let shared = unsafe SecretBytes(count: AgeStanza.shareCount, locked: false) { target in
      status = unsafe secret.withPointer { unsafe crypto_scalarmult(target, $0, point) }
    }
    guard status == 0 else { return nil }
    return shared
  }
}

/// A recipient stanza: the file key for one recipient ("Recipient stanza").
///
/// The stanzas of the types that this module implements are checked when they are parsed, so a
/// header with an invalid one is refused whatever identity is used. Others are ignored.
enum AgeStanza: Hashable, Sendable {
  /// "X25519 recipient stanza": the ephemeral share, 32 bytes, and the wrapped file key.
  case x25519(share: [UInt8], body: [UInt8])
  /// "scrypt recipient stanza": 16 bytes of salt, the base-two logarithm of the work factor, and
  /// the wrapped file key.
  case scrypt(salt: [UInt8], workFactor: Int, body: [UInt8])
  /// A stanza of another type, which is its first argument: of another program, or grease.
  case other(arguments: [String], body: [UInt8])

  private static let bodyCount = AgeFileKey.byteCount + AEAD.tagCount
  /// The size of a share and of a recipient, in bytes.
  static let shareCount = 32
  /// The size of a salt of scrypt, in bytes.
  static let saltCount = 16

  /// Creates a stanza from its arguments, at least one.
  ///
  /// - Throws: `header` for a stanza of type X25519 or scrypt that violates the specification.
  init(arguments: [String], body: [UInt8]) throws(AgeError) {
    switch arguments.first {
    case "X25519":
      try Self.check(arguments, count: 2, body: body)
      let share = try Self.bytes(arguments[1], count: Self.shareCount, of: "share of X25519")
      self = .x25519(share: share, body: body)
    case "scrypt":
      try Self.check(arguments, count: 3, body: body)
      let salt = try Self.bytes(arguments[1], count: Self.saltCount, of: "salt of scrypt")
      self = .scrypt(salt: salt, workFactor: try Self.workFactor(arguments[2]), body: body)
    default:
      self = .other(arguments: arguments, body: body)
    }
  }

  private static func check(
    _ arguments: [String], count: Int, body: [UInt8]
  ) throws(AgeError) {
    let type = arguments.first ?? ""
    guard arguments.count == count else {
      throw AgeError(
        .header, "a stanza of type \(type) has \(arguments.count) arguments instead of \(count)")
    }
    // Before decryption: a longer body could be made for several keys at once.
    guard body.count == bodyCount else {
      throw AgeError(
        .header, "a stanza of type \(type) has \(body.count) bytes instead of \(bodyCount)")
    }
  }

  private static func bytes(
    _ argument: String, count: Int, of subject: String
  ) throws(AgeError) -> [UInt8] {
    guard let bytes = Base64.decode(argument.utf8, padded: false) else {
      throw AgeError(.header, "the \(subject) is not canonical Base64")
    }
    guard bytes.count == count else {
      throw AgeError(.header, "the \(subject) has \(bytes.count) bytes instead of \(count)")
    }
    return bytes
  }

  /// Returns a work factor: a decimal number without sign and leading zeros, at most 63.
  private static func workFactor(_ argument: String) throws(AgeError) -> Int {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    guard argument.utf8.allSatisfy({ digits ~= $0 }), argument.utf8.first != UInt8(ascii: "0"),
      let factor = Int(argument), factor < 64
    else { throw AgeError(.header, "the work factor of scrypt is not a number from 1 to 63") }
    return factor
  }

  // MARK: - Text

  private var arguments: [String] {
    switch self {
    case .x25519(let share, _): ["X25519", Base64.encode(share, padded: false)]
    case .scrypt(let salt, let workFactor, _):
      ["scrypt", Base64.encode(salt, padded: false), String(workFactor)]
    case .other(let arguments, _): arguments
    }
  }

  private var body: [UInt8] {
    switch self {
    case .x25519(_, let body), .scrypt(_, _, let body), .other(_, let body): body
    }
  }

  /// Appends the text: the arguments, and the body in lines of 64 characters, the last of which is
  /// shorter and may be empty.
  func encode(to header: inout [UInt8]) {
    header += Array("-> \(arguments.joined(separator: " "))\n".utf8)
    let text = Array(Base64.encode(body, padded: false).utf8)
    for start in stride(from: 0, through: text.count, by: AgeHeader.columns) {
      header += text[start..<min(text.count, start + AgeHeader.columns)]
      header.append(UInt8(ascii: "\n"))
    }
  }
}
