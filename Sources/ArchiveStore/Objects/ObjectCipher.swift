internal import Codecs
internal import Synchronization
internal import SystemIO

/// Encrypts and decrypts the objects of a repository, and keeps the keys of the packs that are
/// read. Safe to use from any thread.
final class ObjectCipher: Sendable {
  /// The identities that decrypt; none on a host that cannot read.
  private let identities: [AgeIdentity]
  /// The recipients of new objects; none if the repository was opened without a key.
  private let recipients: [AgeRecipient]
  /// Whether an older identity that objects may need was not given.
  private let lacksOlder: Bool
  /// The packs that were read.
  private let packs = Mutex<[Digest: EncryptedPack]>([:])

  /// The number of packs whose keys are kept, about 1 KiB each.
  private static let keptPacks = 4096
  /// The time since the start of the system, in seconds, at which reading `repository.json` began.
  /// It includes suspensions, during which other programs may have rotated the key.
  let opened: Double
  /// The number of bytes first read for a header: enough for about 40 recipients.
  private static let firstHead = 4096

  init(
    identities: [AgeIdentity], recipients: [AgeRecipient], lacksOlder: Bool = false,
    opened: Double = Host.bootSeconds()
  ) {
    (self.identities, self.recipients, self.opened) = (identities, recipients, opened)
    self.lacksOlder = lacksOlder
  }

  /// Returns a range of stored bytes that contains a range of an object's content, given only the
  /// stored size: its pieces, and a little more for the head.
  static func storedRange(around content: Range<UInt64>, size: UInt64) -> Range<UInt64> {
    let (plain, stored) = (UInt64(AgePayload.plainCount), UInt64(AgePayload.storedCount))
    let start = min(content.lowerBound / plain * stored, size)
    let pieces = (content.upperBound + plain - 1) / plain
    return start..<max(start, min(size, pieces * stored + UInt64(firstHead)))
  }

  /// Whether objects can be read.
  var canRead: Bool { !identities.isEmpty }

  /// The maximum stored size of content of at most `limit` bytes.
  static func storedLimit(of limit: Int) -> Int {
    AgePayload.storedCount(ofPlain: limit) + AgeHeader.maximumCount + 16
  }

  // MARK: - Encryption

  /// Begins a file for all recipients.
  func newFile(_ location: String) throws(StoreError) -> AgeFile {
    guard !recipients.isEmpty else { throw .keyRequired("write to", location) }
    do { return try AgeFile(for: recipients) } catch { throw .age(error, location) }
  }

  /// Returns the stored bytes of an object.
  func encrypt(_ content: [UInt8], _ location: String) throws(StoreError) -> [UInt8] {
    try newFile(location).encrypt(content.span)
  }

  // MARK: - Whole objects

  /// Returns the content of a whole object.
  func decrypt(_ stored: [UInt8], _ object: String) throws(StoreError) -> [UInt8] {
    let file = try open(stored, object)
    do { return try file.decrypt(stored.span) } catch { throw .age(error, object) }
  }

  private func open(_ prefix: [UInt8], _ object: String) throws(StoreError) -> AgeFile {
    try requireIdentity(object)
    do {
      return try AgeFile(opening: prefix.span, with: identities)
    } catch {
      if lacksOlder, error.kind == .noMatch { throw .olderKeyRequired(object) }
      throw .age(error, object)
    }
  }

  /// Checks that objects can be read.
  ///
  /// - Throws: `keyRequired` without an identity.
  func requireIdentity(_ object: String) throws(StoreError) {
    guard !canRead else { return }
    guard let first = recipients.first else { throw .keyRequired("read", object) }
    let others = recipients.count > 1 ? " or \(recipients.count - 1) others" : ""
    throw StoreError(
      .keyRequired, "read", subject: object,
      reason: "without a key it can only be written to: it is encrypted for \(first)\(others)",
      hint: "give the identity of a recipient with '--identity FILE', or a passphrase with "
        + "'--passphrase-file FILE' if it has key files")
  }

  /// Reads the head of an object.
  private func open(
    _ path: ObjectPath, size: UInt64, in storage: any Storage
  ) throws(StoreError) -> AgeFile {
    try requireIdentity("\(path)")
    return try open(try Self.head(of: path, size: size, in: storage), "\(path)")
  }

  /// Returns the first bytes of an object, with the whole head if it is intact.
  ///
  /// - Parameter size: the stored size in bytes.
  static func head(
    of path: ObjectPath, size: UInt64, in storage: any Storage
  ) throws(StoreError) -> [UInt8] {
    let limit = Int(min(size, UInt64(AgeHeader.maximumCount + 16)))
    var head = try storage.load(path, offset: 0, count: min(limit, firstHead))
    if AgeFile.headCount(in: head.span).map({ $0 > head.count }) ?? true, head.count < limit {
      head = try storage.load(path, offset: 0, count: limit)
    }
    return head
  }

  /// Starts to decrypt an object from its beginning to its end.
  func decoder(
    of path: ObjectPath, size: UInt64, in storage: any Storage
  ) throws(StoreError) -> Decoder {
    Decoder(try open(path, size: size, in: storage), "\(path)")
  }

  /// Decrypts the stored bytes of one object.
  struct Decoder: ~Copyable {
    private var decryptor: AgeDecryptor?
    /// The bytes of the head that were not yet passed.
    private var head: Int
    private let object: String

    fileprivate init(_ file: AgeFile, _ object: String) {
      decryptor = AgeDecryptor(file)
      head = file.head.count
      self.object = object
    }

    /// Appends the content of the next stored bytes. The last bytes may be passed only once, and
    /// append the rest.
    mutating func decode(
      _ stored: [UInt8], isLast: Bool, appendingTo content: inout [UInt8]
    ) throws(StoreError) {
      let skipped = min(head, stored.count)
      head -= skipped
      do {
        try decryptor?.decrypt(
          stored.span.extracting(skipped..<stored.count), appendingTo: &content)
        if isLast, let decryptor = decryptor.take() {
          try decryptor.finish(appendingTo: &content)
        }
      } catch { throw .age(error, object) }
    }
  }

  // MARK: - Openers

  /// Whether an identity is the one with this name.
  func opens(_ opener: Digest) -> Bool {
    identities.contains { Self.opener($0.recipient) == opener }
  }

  /// Names an identity that opens an object: one of those that open it together.
  func opener(
    of path: ObjectPath, size: UInt64, in storage: any Storage
  ) throws(StoreError) -> Digest {
    if identities.count > 1 {
      let head = try Self.head(of: path, size: size, in: storage)
      for identity in identities
      where (try? AgeFile(opening: head.span, with: [identity])) != nil {
        return Self.opener(identity.recipient)
      }
    }
    return identities.first.map { Self.opener($0.recipient) } ?? Self.noOpener
  }

  /// Names an identity that opens a new object: one of this host if there is one, otherwise that of
  /// the first recipient.
  var openerOfNew: Digest {
    let own = recipients.first { recipient in
      identities.contains { $0.recipient == recipient }
    }
    return (own ?? recipients.first).map(Self.opener) ?? Self.noOpener
  }

  /// Names no identity.
  static let noOpener = Blake2b.hash([])

  private static func opener(_ recipient: AgeRecipient) -> Digest {
    Blake2b.hash(Array(recipient.description.utf8))
  }

  // MARK: - Packs

  /// Returns a pack's key, which is read once.
  ///
  /// - Parameter size: the stored size in bytes; nil to ask the storage.
  func pack(
    _ id: Digest, at path: ObjectPath, size: UInt64?, in storage: any Storage
  ) throws(StoreError) -> EncryptedPack {
    if let known = packs.withLock({ $0[id] }), size ?? known.size == known.size { return known }
    var found = size
    if found == nil { found = try storage.status(path)?.size }
    guard let size = found else { throw .missing("\(path)") }
    let pack = EncryptedPack(
      try open(path, size: size, in: storage), size: size, name: "\(path)")
    packs.withLock { packs in
      if packs.count >= Self.keptPacks {
        for id in packs.keys.prefix(Self.keptPacks / 2) { packs[id] = nil }
      }
      packs[id] = pack
    }
    return pack
  }
}

/// A pack whose content is decrypted in ranges. One that was cut off can be read up to its last
/// complete piece.
struct EncryptedPack: Sendable {
  private let file: AgeFile
  /// The stored size in bytes, without a remainder that is too short for a piece.
  private let readableSize: UInt64
  fileprivate let size: UInt64
  private let name: String

  fileprivate init(_ file: AgeFile, size: UInt64, name: String) {
    (self.file, self.size, self.name) = (file, size, name)
    let stored = size - min(size, UInt64(file.head.count))
    let rest = stored % UInt64(AgePayload.storedCount)
    let tag = UInt64(AgePayload.storedCount - AgePayload.plainCount)
    readableSize = rest <= tag && stored > tag ? size - rest : size
  }

  /// Whether the last piece is complete, and may therefore not be the last one of the file.
  private var endsWithWholePiece: Bool {
    (readableSize - UInt64(file.head.count)) % UInt64(AgePayload.storedCount) == 0
  }

  /// The size of the content in bytes.
  func contentSize() throws(StoreError) -> UInt64 {
    do { return try file.plainCount(ofStored: size) } catch { throw .age(error, name) }
  }

  /// The end of the content in the complete pieces, if the pack was cut off.
  var contentLimit: UInt64 {
    let stored = readableSize - min(readableSize, UInt64(file.head.count))
    return stored / UInt64(AgePayload.storedCount) * UInt64(AgePayload.plainCount)
  }

  /// Returns the stored bytes that a range of the content needs.
  func storedRange(of range: Range<UInt64>) throws(StoreError) -> Range<UInt64> {
    do {
      return try file.storedRange(of: range, size: readableSize)
    } catch { throw .age(error, name) }
  }

  /// Decrypts a range of the content from the bytes in its `storedRange`, and appends it to a
  /// buffer.
  func decrypt(
    _ range: Range<UInt64>, stored: [UInt8], appendingTo buffer: inout [UInt8]
  ) throws(StoreError) {
    do {
      try file.open(range, stored: stored.span, size: readableSize, appendingTo: &buffer)
    } catch {
      // Pieces are authenticated with their numbers: a piece that was followed by others is intact.
      let whole = readableSize + UInt64(AgePayload.storedCount)
      guard endsWithWholePiece,
        (try? file.open(range, stored: stored.span, size: whole, appendingTo: &buffer)) != nil
      else { throw .age(error, name) }
    }
  }
}

extension StoreError {
  /// Returns the error for an age file that cannot be decrypted or made.
  static func age(_ error: AgeError, _ object: String) -> StoreError {
    switch error.kind {
    // The key opens the repository, so an object that it does not open was changed, or belongs to
    // another repository. In either case only that object is lost.
    case .armor, .header, .headerMAC, .payload:
      StoreError(
        .damaged, "decrypt", subject: object, reason: error.reason, hint: checkHint)
    case .noMatch:
      StoreError(
        .damaged, "decrypt", subject: object,
        reason: "the key opens the repository but not this object: its header was changed, or it "
          + "was encrypted with an older key (\(error.reason))",
        hint: "try a passphrase, or all lines of the recovery key; if none opens it, restore the "
          + "object from a copy of the repository")
    case .key, .unsupported, .limit:
      StoreError(
        .invalid, "use the key of", subject: object, reason: error.reason, hint: error.hint)
    case .library:
      StoreError(.system, "use the key of", subject: object, reason: error.reason, hint: error.hint)
    }
  }

  /// Returns the error for an object that no identity opens, if an older identity was not given.
  /// The object may be intact.
  static func olderKeyRequired(_ object: String) -> StoreError {
    StoreError(
      .damaged, "decrypt", subject: object,
      reason: "the key does not open this object, which may be older than the last 'key rotate': "
        + "the key lacks an older identity",
      hint: "use a passphrase, or all lines of the recovery key; after 'sandboxctl key rewrap' "
        + "with one of these, the identity of each recipient is enough",
      cause: nil, needsOlderKey: true)
  }

  /// Returns the error for work that needs the repository's key.
  static func keyRequired(_ action: String, _ object: String) -> StoreError {
    StoreError(
      .keyRequired, action, subject: object,
      reason: "it is encrypted, and no key was given",
      hint: "give one with '--passphrase-file FILE', '--passphrase-command COMMAND' or "
        + "'--identity FILE'")
  }
}
