package import Codecs

/// The random key that encrypts the data of an Android backup, AES-256 in CBC mode.
///
/// The header has it encrypted with a key that PBKDF2 with HMAC-SHA1 derives from the password,
/// next to a checksum: PBKDF2 of the key itself with a salt of its own. Java's PBKDF2 takes
/// characters, so the checksum depends on how bytes become characters and these become bytes again:
/// Android casts each signed byte to a character (0x80 to U+FF80), and since version 4.4 encodes
/// that in UTF-8; before it took the low eight bits. A version 1 may be of either kind, and
/// programs other than Android mix them, so both are tried, for the password as well. The data
/// itself has no checksum: a changed block decrypts to other bytes.
///
/// Source: AOSP, `PasswordUtils.java`, `PerformAdbRestoreTask.java`.
package struct AndroidMasterKey: ~Copyable {
  let key: SecretBytes
  /// The initialization vector of the data.
  let vector: [UInt8]

  static let checksumSize = 32
  /// The rounds of PBKDF2 in new backups, as in Android.
  static let usualRounds: UInt32 = 10_000
  /// The size of a salt in new backups, in bytes.
  static let usualSaltSize = 64

  private init(key: consuming SecretBytes, vector: [UInt8]) {
    self.key = key
    self.vector = vector
  }

  /// Returns the cipher of the data.
  func cipher(_ direction: BlockCipher.Direction) -> BlockCipher {
    BlockCipher(direction, key: key, vector: vector)
  }
}

// MARK: - Opening

extension AndroidMasterKey {
  /// Returns the key that a header contains, or nil if the password, in UTF-8, does not open it.
  package static func open(
    _ encryption: AndroidBackupHeader.Encryption, with password: borrowing SecretBytes
  ) -> AndroidMasterKey? {
    if let opened = attempt(encryption, with: password) { return opened }
    guard let narrow = lowBytes(of: password) else { return nil }
    return attempt(encryption, with: narrow)
  }

  private static func attempt(
    _ encryption: AndroidBackupHeader.Encryption, with password: borrowing SecretBytes
  ) -> AndroidMasterKey? {
    let outer = PasswordKey.derive(
      from: password, salt: encryption.passwordSalt, rounds: encryption.rounds, hash: .sha1)
    var blob = encryption.masterKey
    defer { blob.wipe() }
    var cipher = BlockCipher(.decrypt, key: outer, vector: encryption.vector)
    blob.withUnsafeMutableBytes { cipher.process($0) }
    guard let padding = BlockPadding.count(atEndOf: blob.span),
      let parts = Parts(blob, count: blob.count - padding)
    else { return nil }
    let key = SecretBytes(copying: blob.span.extracting(parts.key))
    let expected = blob[parts.checksum]
    for form in ChecksumForm.allCases {
      let checksum = form.checksum(of: key, encryption)
      if checksum.elementsEqual(expected) {
        return AndroidMasterKey(key: key, vector: Array(blob[parts.vector]))
      }
    }
    return nil
  }

  /// The parts of the decrypted master key: three times a byte for the size, and the bytes.
  private struct Parts {
    let vector: Range<Int>
    let key: Range<Int>
    let checksum: Range<Int>

    init?(_ blob: [UInt8], count: Int) {
      var position = 0
      func part(_ size: Int) -> Range<Int>? {
        guard position < count, Int(blob[position]) == size, size <= count - position - 1 else {
          return nil
        }
        defer { position += 1 + size }
        return position + 1..<position + 1 + size
      }
      guard let vector = part(BlockCipher.blockSize), let key = part(BlockCipher.keySize),
        let checksum = part(AndroidMasterKey.checksumSize), position == count
      else { return nil }
      (self.vector, self.key, self.checksum) = (vector, key, checksum)
    }
  }

  /// The ways to make bytes of a key's characters.
  enum ChecksumForm: CaseIterable {
    /// UTF-8 of the characters.
    case utf8
    /// The low eight bits of the characters: the key itself.
    case lowBytes

    func checksum(
      of key: borrowing SecretBytes, _ encryption: AndroidBackupHeader.Encryption
    ) -> [UInt8] {
      let derived =
        switch self {
        case .utf8: Self.derive(from: Self.characters(of: key), encryption)
        case .lowBytes: Self.derive(from: key, encryption)
        }
      return derived.withBytes { bytes in bytes.indices.map { bytes[$0] } }
    }

    private static func derive(
      from bytes: borrowing SecretBytes, _ encryption: AndroidBackupHeader.Encryption
    ) -> SecretBytes {
      PasswordKey.derive(
        from: bytes, salt: encryption.checksumSalt, rounds: encryption.rounds, hash: .sha1)
    }

    /// Returns UTF-8 of a key whose bytes were cast from signed bytes to characters: those from
    /// 0x80 are U+FF80 to U+FFFF.
    private static func characters(of key: borrowing SecretBytes) -> SecretBytes {
      var text: [UInt8] = []
      text.reserveCapacity(key.count * 3)
      defer { text.wipe() }
      key.withBytes { bytes in
        for index in bytes.indices {
          let byte = bytes[index]
          if byte < 0x80 {
            text.append(byte)
          } else {
            text += [0xef, 0xbc | byte >> 6, 0x80 | byte & 0x3f]
          }
        }
      }
      return SecretBytes(copying: text.span)
    }
  }

  /// Returns the low eight bits of each UTF-16 unit of a password in UTF-8, or nil if it is ASCII,
  /// where they are the same, or is not UTF-8.
  private static func lowBytes(of password: borrowing SecretBytes) -> SecretBytes? {
    var (text, narrow) = ([UInt8](), [UInt8]())
    // The memory of a secret must not move.
    text.reserveCapacity(password.count)
    narrow.reserveCapacity(password.count)
    defer {
      text.wipe()
      narrow.wipe()
    }
    password.withBytes { bytes in
      for index in bytes.indices { text.append(bytes[index]) }
    }
    let isText = appendLowBytes(of: text, to: &narrow)
    return isText && narrow.count != password.count ? SecretBytes(copying: narrow.span) : nil
  }

  /// Appends the low eight bits of the UTF-16 units of UTF-8. Returns false if it is not UTF-8.
  private static func appendLowBytes(of text: [UInt8], to narrow: inout [UInt8]) -> Bool {
    var decoder = UTF8()
    var iterator = text.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar):
        for unit in String(scalar).utf16 { narrow.append(UInt8(truncatingIfNeeded: unit)) }
      case .emptyInput: return true
      case .error: return false
      }
    }
  }
}

// MARK: - Creating

extension AndroidMasterKey {
  /// Creates a random key and encrypts it for a password in UTF-8.
  package static func make(
    for password: borrowing SecretBytes, into encryption: inout AndroidBackupHeader.Encryption?
  ) -> AndroidMasterKey {
    var new = AndroidBackupHeader.Encryption(
      passwordSalt: SecretBytes.publicRandom(count: usualSaltSize),
      checksumSalt: SecretBytes.publicRandom(count: usualSaltSize), rounds: usualRounds,
      vector: SecretBytes.publicRandom(count: BlockCipher.blockSize), masterKey: [])
    let master = AndroidMasterKey(
      key: SecretBytes.random(count: BlockCipher.keySize, locked: true),
      vector: SecretBytes.publicRandom(count: BlockCipher.blockSize))
    let outer = PasswordKey.derive(
      from: password, salt: new.passwordSalt, rounds: new.rounds, hash: .sha1)
    var blob: [UInt8] = []
    blob.reserveCapacity(AndroidBackupHeader.masterKeySizes.upperBound)
    defer { blob.wipe() }
    blob.append(UInt8(master.vector.count))
    blob += master.vector
    blob.append(UInt8(master.key.count))
    master.key.withBytes { bytes in
      for index in bytes.indices { blob.append(bytes[index]) }
    }
    blob.append(UInt8(checksumSize))
    blob += ChecksumForm.utf8.checksum(of: master.key, new)
    blob += BlockPadding.bytes(after: UInt64(blob.count))
    var cipher = BlockCipher(.encrypt, key: outer, vector: new.vector)
    cipher.process(blob.span, appendingTo: &new.masterKey)
    encryption = new
    return master
  }
}
