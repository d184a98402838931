internal import Codecs
internal import SystemIO

/// The keys of an encrypted backup that is written, and their form in its property lists.
///
/// Each protection class has a random key, which the keybag contains wrapped with a key of the
/// password. Each content has a random key of its own, wrapped with that of its class, and so has the
/// manifest. A key encrypts one content only: the initialization vector is zeros.
package final class MobileSyncKeys: Sendable {
  /// `BackupKeyBag` of Manifest.plist.
  let keybag: [UInt8]
  /// `ManifestKey` of Manifest.plist.
  let manifestKey: [UInt8]
  private let database: ClassKeys.Key
  private let classes: ClassKeys

  /// The classes of data protection that a file can have.
  static let classNumbers: ClosedRange<UInt8> = 1...4

  /// Creates random keys, and derives the key of a password, which takes several seconds with the
  /// rounds that Apple's programs write.
  ///
  /// - Parameters:
  ///   - firstRounds: the rounds of PBKDF2 with HMAC-SHA-256.
  ///   - rounds: the rounds of PBKDF2 with HMAC-SHA-1 after it.
  package init(
    for password: BackupPassword, firstRounds: UInt32 = 10_000_000, rounds: UInt32 = 10_000
  ) {
    let salt = SecretBytes.publicRandom(count: Self.saltSize)
    let firstSalt = SecretBytes.publicRandom(count: Self.saltSize)
    let middle = PasswordKey.derive(
      from: password.bytes, salt: firstSalt, rounds: firstRounds, hash: .sha256)
    let outer = PasswordKey.derive(from: middle, salt: salt, rounds: rounds, hash: .sha1)
    var bag = KeybagWriter()
    bag.add("VERS", 5)
    bag.add("TYPE", KeybagWriter.backup)
    bag.add("UUID", SecretBytes.publicRandom(count: KeybagWriter.identifierSize))
    // The key of a checksum that no reader of backups knows, wrapped as those of the classes.
    bag.add("HMCK", KeyWrap.wrap(SecretBytes.random(count: BlockCipher.keySize), with: outer))
    bag.add("WRAP", 0)
    bag.add("SALT", salt)
    bag.add("ITER", rounds)
    bag.add("DPWT", 1)
    bag.add("DPIC", firstRounds)
    bag.add("DPSL", firstSalt)
    var keys: [UInt32: ClassKeys.Key] = [:]
    for number in Self.classNumbers.map({ UInt32($0) }) {
      let key = ClassKeys.Key(SecretBytes.random(count: BlockCipher.keySize, locked: true))
      bag.add("UUID", SecretBytes.publicRandom(count: KeybagWriter.identifierSize))
      bag.add("CLAS", number)
      bag.add("WRAP", KeybagWriter.wrappedByPassword)
      bag.add("KTYP", 0)
      bag.add("WPKY", KeyWrap.wrap(key.bytes, with: outer))
      keys[number] = key
    }
    keybag = bag.bytes
    classes = ClassKeys(keys)
    database = ClassKeys.Key(SecretBytes.random(count: BlockCipher.keySize, locked: true))
    manifestKey =
      classes.wrap(database, class: UInt32(MobileFile.usualProtectionClass))?.encoded ?? []
  }

  /// The size of a salt in bytes.
  private static let saltSize = 20

  /// Creates the key of a content of a class (`classNumbers`), and wraps it as the manifest has it.
  func makeKey(class number: UInt8) -> (key: ClassKeys.Key, wrapped: WrappedKey) {
    let key = ClassKeys.Key(SecretBytes.random(count: BlockCipher.keySize))
    guard let wrapped = classes.wrap(key, class: UInt32(number)) else {
      preconditionFailure("a class without a key")
    }
    return (key, wrapped)
  }

  /// Encrypts the database of the manifest.
  func encryptDatabase(
    _ plain: borrowing Descriptor, to target: borrowing Descriptor
  ) throws(SystemError) {
    var cipher = PaddedCipher(key: database.bytes)
    var (buffer, offset): ([UInt8], UInt64) = ([], 0)
    while true {
      try plain.read(count: 1 << 20, at: offset, into: &buffer)
      if buffer.isEmpty { break }
      offset += UInt64(buffer.count)
      try target.write(cipher.encrypt(buffer))
    }
    try target.write(cipher.finish())
    try target.sync()
  }
}

/// Writes the items that `Keybag` reads.
private struct KeybagWriter {
  private(set) var bytes: [UInt8] = []

  /// The type of the keybag of a backup.
  static let backup: UInt32 = 1
  /// The flag of a key that the password unwraps.
  static let wrappedByPassword: UInt32 = 2
  /// The size of an identifier in bytes.
  static let identifierSize = 16

  mutating func add(_ tag: String, _ value: [UInt8]) {
    bytes += Array(tag.utf8) + Self.word(UInt32(value.count)) + value
  }

  mutating func add(_ tag: String, _ number: UInt32) { add(tag, Self.word(number)) }

  /// Returns the bytes of a number, big-endian.
  private static func word(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { (shift: UInt32) in UInt8(truncatingIfNeeded: number >> shift) }
  }
}
