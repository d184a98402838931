/// An age file with its key: the header with the payload's nonce, and the key of the payload
/// ("Encrypted file format").
///
/// `AgeEncryptor` and `AgeDecryptor` process a whole file; `storedRange(of:size:)` and
/// `open(_:stored:size:appendingTo:)` decrypt ranges of its plain bytes.
public struct AgeFile: Sendable {
  /// The stored bytes before the first piece: the header and the nonce.
  public let head: [UInt8]
  /// The key of the payload.
  public let payload: AgePayload

  // MARK: - New files

  /// Begins a file for recipients, at least one, with a new file key.
  ///
  /// - Throws: `limit` if the header would exceed 64 KiB.
  public init(for recipients: [AgeRecipient]) throws(AgeError) {
    let key = AgeFileKey()
    self.init(try Self.header(for: recipients, key), key)
  }

  /// Begins a file for a passphrase, with a new file key.
  ///
  /// - Parameter workFactor: the base-two logarithm of scrypt's work factor, from 1 to 63.
  /// - Throws: `library` without enough memory for scrypt.
  public init(
    for passphrase: AgePassphrase, workFactor: Int = AgeHeader.usualWorkFactor
  ) throws(AgeError) {
    let key = AgeFileKey()
    let stanza = try passphrase.wrap(key, workFactor: workFactor)
    self.init(try AgeHeader.encode([stanza], authenticatedBy: key), key)
  }

  private init(_ header: [UInt8], _ key: borrowing AgeFileKey) {
    let nonce = SecretBytes.publicRandom(count: AgePayload.nonceCount)
    head = header + nonce
    payload = key.payload(nonce: nonce)
  }

  private static func header(
    for recipients: [AgeRecipient], _ key: borrowing AgeFileKey
  ) throws(AgeError) -> [UInt8] {
    var stanzas: [AgeStanza] = []
    for recipient in recipients { stanzas.append(recipient.wrap(key)) }
    return try AgeHeader.encode(stanzas, authenticatedBy: key)
  }

  // MARK: - Existing files

  /// The size of the head at the beginning of a file in bytes, or nil if the bytes do not include
  /// the end of its header.
  public static func headCount(in prefix: Span<UInt8>) -> Int? {
    AgeHeader.count(in: prefix).map { $0 + AgePayload.nonceCount }
  }

  /// Opens a file whose first bytes are given, at least its head, with the first identity that
  /// unwraps its file key.
  ///
  /// - Throws: `header` if the header or the nonce is invalid or truncated; `noMatch` if no
  ///   identity is one of its recipients; `headerMAC` if the header was changed.
  public init(opening prefix: Span<UInt8>, with identities: [AgeIdentity]) throws(AgeError) {
    let header = try AgeHeader(prefix)
    try self.init(prefix, header: header, key: try header.open(with: identities))
  }

  /// Opens a file whose first bytes are given, at least its head, with a passphrase.
  ///
  /// - Parameter maximumWorkFactor: the largest base-two logarithm of scrypt's work factor.
  /// - Throws: `header` if the header or the nonce is invalid or truncated; `limit` if the work
  ///   factor exceeds its limit; `noMatch` if it is not the passphrase; `headerMAC` if the header
  ///   was changed.
  public init(
    opening prefix: Span<UInt8>, with passphrase: AgePassphrase,
    maximumWorkFactor: Int = AgeHeader.maximumWorkFactor
  ) throws(AgeError) {
    let header = try AgeHeader(prefix)
    try self.init(
      prefix, header: header,
      key: try header.open(with: passphrase, maximumWorkFactor: maximumWorkFactor))
  }

  init(
    _ prefix: Span<UInt8>, header: AgeHeader, key: borrowing AgeFileKey
  ) throws(AgeError) {
    let count = header.count + AgePayload.nonceCount
    guard prefix.count >= count else {
      throw AgeError(.header, "the nonce of the payload is truncated")
    }
    head = (0..<count).map { prefix[$0] }
    payload = key.payload(nonce: Array(head[header.count...]))
  }

  // MARK: - Other recipients

  /// Returns a header for other recipients of an existing file, whose header is at the beginning of
  /// the given bytes. Its payload, with the nonce, stays valid after the new header.
  ///
  /// Anyone who could read the file before may have kept its file key.
  ///
  /// - Throws: as `init(opening:with:)` does; `limit` if the header would exceed 64 KiB.
  public static func header(
    of file: Span<UInt8>, openedWith identities: [AgeIdentity], for recipients: [AgeRecipient]
  ) throws(AgeError) -> [UInt8] {
    let key = try AgeHeader(file).open(with: identities)
    return try header(for: recipients, key)
  }
}

extension AgeHeader {
  /// Returns the file key, unwrapped by the first identity that can, after verifying the MAC.
  func open(with identities: [AgeIdentity]) throws(AgeError) -> AgeFileKey {
    for stanza in stanzas {
      guard case .x25519(let share, let body) = stanza else { continue }
      for identity in identities {
        guard let key = try identity.unwrap(share: share, body: body) else { continue }
        try verify(with: key)
        return key
      }
    }
    throw AgeError(.noMatch, mismatch)
  }

  /// Returns the file key, unwrapped by a passphrase, after verifying the MAC.
  func open(
    with passphrase: AgePassphrase, maximumWorkFactor: Int
  ) throws(AgeError) -> AgeFileKey {
    guard case .scrypt(let salt, let workFactor, let body) = stanzas.first else {
      throw AgeError(.noMatch, "it is not encrypted with a passphrase")
    }
    let key = try passphrase.unwrap(
      salt: salt, workFactor: workFactor, body: body, limit: maximumWorkFactor)
    guard let key else { throw AgeError(.noMatch, "the passphrase is wrong") }
    try verify(with: key)
    return key
  }

  /// The reason why no identity matches, with the types of recipients that are not supported.
  private var mismatch: String {
    if hasPassphrase { return "it is encrypted with a passphrase" }
    let names = stanzas.compactMap { stanza in
      if case .other(let arguments, _) = stanza {
        AgeKeyType.unsupportedStanza(arguments[0])
      } else {
        nil
      }
    }
    let recipients = stanzas.count == 1 ? "its recipient" : "any of its \(stanzas.count) recipients"
    let reason = "no identity matches \(recipients)"
    guard !names.isEmpty else { return reason }
    let types = Set(names).sorted().joined(separator: ", ")
    return "\(reason); recipients of these types are not supported: \(types)"
  }
}

/// Ranges of the plain bytes: each is in adjacent pieces, which are read and decrypted alone
/// ("The payload can be seeked").
extension AgeFile {
  /// Returns the number of plain bytes in a file of a stored size.
  ///
  /// It is verified only when a range that includes the last piece is opened: a file that was cut
  /// off between two pieces seems to have a valid size.
  ///
  /// - Throws: `payload` if no file with this head has that size.
  public func plainCount(ofStored size: UInt64) throws(AgeError) -> UInt64 {
    let pieces = try Pieces(self, size)
    return pieces.stored - pieces.count * UInt64(AgePayload.tagCount)
  }

  /// Returns the stored size of a file with this head and a number of plain bytes.
  public func storedCount(ofPlain count: Int) -> Int {
    head.count + AgePayload.storedCount(ofPlain: count)
  }

  /// Returns the range of stored bytes that `open(_:stored:size:appendingTo:)` needs for a range of
  /// plain bytes: whole pieces. It is empty for an empty range.
  ///
  /// - Throws: `payload` if the range is not within the file.
  public func storedRange(
    of plain: Range<UInt64>, size: UInt64
  ) throws(AgeError) -> Range<UInt64> {
    let pieces = try Pieces(self, size)
    try check(plain, pieces)
    let (numbers, start) = (pieces.numbers(of: plain), UInt64(head.count))
    return (start + pieces.offset(numbers.lowerBound))..<(start + pieces.offset(numbers.upperBound))
  }

  /// Decrypts a range of plain bytes and appends it to a buffer, which is unchanged on failure.
  ///
  /// - Parameters:
  ///   - plain: the range.
  ///   - stored: the bytes in `storedRange(of:size:)`, no more and no fewer.
  ///   - size: the stored size of the file in bytes.
  /// - Throws: `payload` if the range is not within the file, or a piece of it is damaged or not
  ///   the one with its number.
  public func open(
    _ plain: Range<UInt64>, stored: Span<UInt8>, size: UInt64, appendingTo buffer: inout [UInt8]
  ) throws(AgeError) {
    let pieces = try Pieces(self, size)
    try check(plain, pieces)
    let (numbers, before) = (pieces.numbers(of: plain), buffer.count)
    let wanted = pieces.offset(numbers.upperBound) - pieces.offset(numbers.lowerBound)
    guard UInt64(stored.count) == wanted else {
      throw AgeError(.payload, "\(stored.count) bytes were read instead of \(wanted)")
    }
    guard let first = numbers.first else { return }
    let start = Int(plain.lowerBound - first * UInt64(AgePayload.plainCount))
    buffer.reserveCapacity(before + stored.count)
    do throws(AgeError) {
      // The first piece alone: its bytes before the range are removed while nothing follows that
      // would have to be moved.
      let second = min(stored.count, AgePayload.storedCount)
      try payload.open(
        stored.extracting(..<second), from: first,
        endsPayload: numbers.count == 1 && numbers.upperBound == pieces.count,
        appendingTo: &buffer)
      buffer.removeSubrange(before..<(before + start))
      if numbers.count > 1 {
        try payload.open(
          stored.extracting(second...), from: first + 1,
          endsPayload: numbers.upperBound == pieces.count, appendingTo: &buffer)
      }
    } catch {
      buffer.removeLast(buffer.count - before)
      throw error
    }
    buffer.removeLast(buffer.count - before - plain.count)
  }

  private func check(_ plain: Range<UInt64>, _ pieces: Pieces) throws(AgeError) {
    let count = pieces.stored - pieces.count * UInt64(AgePayload.tagCount)
    guard plain.upperBound <= count else {
      throw AgeError(.payload, "byte \(plain.upperBound) is beyond its \(count) plain bytes")
    }
  }

  /// The pieces of a payload, from its stored size.
  private struct Pieces {
    /// The stored bytes of all pieces.
    let stored: UInt64
    /// The number of pieces, at least 1.
    let count: UInt64

    init(_ file: AgeFile, _ size: UInt64) throws(AgeError) {
      let (whole, tag) = (UInt64(AgePayload.storedCount), UInt64(AgePayload.tagCount))
      guard size >= UInt64(file.head.count) + tag else {
        throw AgeError(.payload, "the first piece is truncated")
      }
      stored = size - UInt64(file.head.count)
      count = (stored - 1) / whole + 1
      // Only the first piece may be empty.
      guard count == 1 || stored - (count - 1) * whole > tag else {
        throw AgeError(.payload, "the last piece is truncated or empty")
      }
    }

    /// Returns the numbers of the pieces with a range of plain bytes.
    func numbers(of plain: Range<UInt64>) -> Range<UInt64> {
      let whole = UInt64(AgePayload.plainCount)
      let first = plain.lowerBound / whole
      return plain.isEmpty ? first..<first : first..<((plain.upperBound - 1) / whole + 1)
    }

    /// Returns the offset of a piece, or of the end.
    func offset(_ number: UInt64) -> UInt64 {
      number >= count ? stored : number * UInt64(AgePayload.storedCount)
    }
  }
}
