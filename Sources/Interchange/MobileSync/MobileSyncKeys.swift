internal import Codecs
internal import SystemIO

/// The keys of an encrypted backup that is being written, and their form in its property lists.
///
/// Each protection class has a random key, which the keybag contains wrapped with a key of the
/// password. Each content has its own random key, wrapped with that of its class, and so does the
/// manifest. A key encrypts only one content, because the initialization vector is all zeros.
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
    let first = Keybag.FirstDerivation(
      salt: SecretBytes.publicRandom(count: Self.saltSize), rounds: firstRounds)
    let middle = PasswordKey.derive(
      from: password.bytes, salt: first.salt, rounds: firstRounds, hash: .sha256)
    let outer = PasswordKey.derive(from: middle, salt: salt, rounds: rounds, hash: .sha1)
    // The key of a checksum that no reader of backups knows, wrapped like those of the classes.
    let checksum = KeyWrap.wrap(SecretBytes.random(count: BlockCipher.keySize), with: outer)
    var bag = KeybagWriter(checksum: checksum, salt: salt, rounds: rounds, first: first)
    var keys: [UInt32: ClassKeys.Key] = [:]
    for number in Self.classNumbers.map({ UInt32($0) }) {
      let key = ClassKeys.Key(SecretBytes.random(count: BlockCipher.keySize, locked: true))
      bag.addClass(number, wrapped: KeyWrap.wrap(key.bytes, with: outer))
      keys[number] = key
    }
    keybag = bag.bytes
    classes = ClassKeys(keys)
    database = ClassKeys.Key(SecretBytes.random(count: BlockCipher.keySize, locked: true))
    manifestKey =
      classes.wrap(database, class: UInt32(MobileFile.usualProtectionClass))?.encoded ?? []
  }

  /// Returns the keybag for a plain backup, which also has one, although nothing is encrypted with
  /// its keys.
  ///
  /// It is that of the empty password, without the derivation of iOS 10.2 and with zeros as the key
  /// of the checksum, as in backups from Apple's programs. Some readers need it to open a backup.
  static func plainKeybag() -> [UInt8] {
    let salt = SecretBytes.publicRandom(count: saltSize)
    let none: [UInt8] = []
    let outer = PasswordKey.derive(
      from: SecretBytes(copying: none.span), salt: salt, rounds: plainRounds, hash: .sha1)
    let checksum = [UInt8](repeating: 0, count: BlockCipher.keySize + KeyWrap.overhead)
    var bag = KeybagWriter(checksum: checksum, salt: salt, rounds: plainRounds, first: nil)
    for number in classNumbers {
      let key = SecretBytes.random(count: BlockCipher.keySize)
      bag.addClass(UInt32(number), wrapped: KeyWrap.wrap(key, with: outer))
    }
    return bag.bytes
  }

  /// The rounds of PBKDF2 in the keybag of a plain backup.
  private static let plainRounds: UInt32 = 10_000
  /// The size of a salt in bytes.
  private static let saltSize = 20

  /// Creates the key of a content of a class (`classNumbers`), and wraps it in the form that the
  /// manifest stores.
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

  /// Begins a keybag with its own items.
  init(checksum: [UInt8], salt: [UInt8], rounds: UInt32, first: Keybag.FirstDerivation?) {
    add("VERS", 5)
    add("TYPE", Self.backup)
    add("UUID", SecretBytes.publicRandom(count: Self.identifierSize))
    add("HMCK", checksum)
    add("WRAP", 0)
    add("SALT", salt)
    add("ITER", rounds)
    guard let first else { return }
    add("DPWT", 1)
    add("DPIC", first.rounds)
    add("DPSL", first.salt)
  }

  /// Adds the key of a protection class.
  mutating func addClass(_ number: UInt32, wrapped: [UInt8]) {
    add("UUID", SecretBytes.publicRandom(count: Self.identifierSize))
    add("CLAS", number)
    add("WRAP", Self.wrappedByPassword)
    add("KTYP", 0)
    add("WPKY", wrapped)
  }

  private mutating func add(_ tag: String, _ value: [UInt8]) {
    bytes += Array(tag.utf8) + Self.word(UInt32(value.count)) + value
  }

  private mutating func add(_ tag: String, _ number: UInt32) { add(tag, Self.word(number)) }

  /// Returns the bytes of a number, big-endian.
  private static func word(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { (shift: UInt32) in UInt8(truncatingIfNeeded: number >> shift) }
  }
}
