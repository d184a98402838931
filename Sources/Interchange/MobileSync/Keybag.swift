internal import Codecs

/// The keybag of an iTunes or Finder backup: the keys of the protection classes, each wrapped with
/// a key of the backup's password. (Manifest.plist, "BackupKeyBag"; Apple Platform Security,
/// "Keybags for Data Protection". The format follows published readers: iphone-dataprotection,
/// iphone_backup_decrypt.)
///
/// It is a sequence of items: a tag of 4 letters, a length of 32 bits (big-endian), and the value.
/// The first UUID and WRAP are the keybag's own; each further UUID begins a class.
struct Keybag: Sendable, Hashable {
  /// The salt and the number of rounds of PBKDF2 with HMAC-SHA-1.
  let salt: [UInt8]
  let rounds: UInt32
  /// The salt and the rounds of PBKDF2 with HMAC-SHA-256 before it, since iOS 10.2. Recognized by
  /// their presence, not by a version.
  let first: FirstDerivation?
  let classes: [ClassKey]

  /// The derivation of the first key from the password.
  struct FirstDerivation: Sendable, Hashable {
    let salt: [UInt8]
    let rounds: UInt32
  }

  /// The wrapped key of a protection class.
  struct ClassKey: Sendable, Hashable {
    var number: UInt32 = 0
    var wrapping: UInt32 = 0
    var wrapped: [UInt8] = []

    /// Whether the password unwraps the key, rather than a key in the device.
    var isWrappedByPassword: Bool { wrapping & 2 != 0 }
  }

  /// The limits of a keybag: Apple's programs write 10 million and 10,000 rounds, and 20 million
  /// take up to 20 seconds.
  enum Limit {
    static let bytes = 64 << 10
    static let classes = 64
    static let firstRounds: UInt32 = 20_000_000
    static let rounds: UInt32 = 1_000_000
    static let salt = 256
    static let key = 256
  }

  /// Parses a keybag.
  init(_ bytes: [UInt8]) throws(KeybagError) {
    var parser = Parser()
    try parser.parse(bytes)
    guard let rounds = parser.rounds, rounds > 0, !parser.salt.isEmpty else {
      throw .damaged("the keybag has no salt or number of rounds")
    }
    guard rounds <= Limit.rounds, (parser.firstRounds ?? 0) <= Limit.firstRounds else {
      throw .limit(
        "the keybag asks for \(max(rounds, parser.firstRounds ?? 0)) rounds of key derivation")
    }
    (salt, self.rounds, classes) = (parser.salt, rounds, parser.classes)
    if let firstRounds = parser.firstRounds {
      guard firstRounds > 0, !parser.firstSalt.isEmpty else {
        throw .damaged("the keybag has no salt or rounds of its first derivation")
      }
      first = FirstDerivation(salt: parser.firstSalt, rounds: firstRounds)
    } else {
      first = nil
    }
  }

  /// Returns the keys of the classes, or nil if the password is wrong. Takes several seconds with
  /// the rounds of iOS 10.2 and later.
  func unlock(password: borrowing SecretBytes) -> ClassKeys? {
    let key = derive(from: password)
    var keys: [UInt32: ClassKeys.Key] = [:]
    for item in classes where item.isWrappedByPassword {
      if let plain = KeyWrap.unwrap(item.wrapped.span, with: key) {
        guard plain.count == BlockCipher.keySize else { continue }
        keys[item.number] = ClassKeys.Key(plain)
      }
    }
    return keys.isEmpty ? nil : ClassKeys(keys)
  }

  /// Returns the key that wraps the keys of the classes.
  private func derive(from password: borrowing SecretBytes) -> SecretBytes {
    guard let first else {
      return PasswordKey.derive(from: password, salt: salt, rounds: rounds, hash: .sha1)
    }
    let middle = PasswordKey.derive(
      from: password, salt: first.salt, rounds: first.rounds, hash: .sha256)
    return PasswordKey.derive(from: middle, salt: salt, rounds: rounds, hash: .sha1)
  }
}

/// A keybag that cannot be used.
enum KeybagError: Error, Hashable, Sendable {
  case damaged(String)
  case limit(String)

  /// The reason in plain words.
  var reason: String {
    switch self {
    case .damaged(let reason), .limit(let reason): reason
    }
  }
}

/// The unwrapped keys of protection classes.
final class ClassKeys: Sendable {
  private let keys: [UInt32: Key]

  /// A key in memory that is wiped.
  final class Key: Sendable {
    let bytes: SecretBytes
    init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
  }

  init(_ keys: [UInt32: Key]) { self.keys = keys }

  /// Returns a key, wrapped with that of a class; nil if there is no such class.
  func wrap(_ key: Key, class number: UInt32) -> WrappedKey? {
    guard let own = keys[number] else { return nil }
    return WrappedKey(classNumber: number, wrapped: KeyWrap.wrap(key.bytes, with: own.bytes))
  }

  /// Returns the key that was wrapped with that of its class, or the reason why that is impossible.
  func unwrap(_ key: WrappedKey) -> Result<Key, UnwrapFault> {
    guard !key.wrapped.isEmpty else {
      return .failure(UnwrapFault(reason: "its key is damaged"))
    }
    guard let own = keys[key.classNumber] else {
      return .failure(
        UnwrapFault(reason: "the keybag has no key of its protection class \(key.classNumber)"))
    }
    guard let plain = KeyWrap.unwrap(key.wrapped.span, with: own.bytes),
      plain.count == BlockCipher.keySize
    else {
      return .failure(UnwrapFault(reason: "its key is damaged"))
    }
    return .success(Key(plain))
  }
}

/// The reason why a key could not be unwrapped, as a clause.
struct UnwrapFault: Error, Hashable, Sendable {
  let reason: String
}

/// The key of a file or of the manifest, wrapped with the key of its protection class: 32 bits
/// (little-endian) with the class, then 40 bytes.
struct WrappedKey: Hashable, Sendable {
  let classNumber: UInt32
  let wrapped: [UInt8]

  init(classNumber: UInt32, wrapped: [UInt8]) {
    (self.classNumber, self.wrapped) = (classNumber, wrapped)
  }

  /// Parses a key, or returns nil for bytes of another length.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 4 + BlockCipher.keySize + KeyWrap.overhead else { return nil }
    classNumber = LittleEndian.integer(bytes.span, at: 0)
    wrapped = Array(bytes[4...])
  }

  /// The key for a content whose key has an invalid length: without a key, the encrypted content
  /// would be treated as plain.
  static let damaged = WrappedKey(classNumber: 0, wrapped: [])
}

extension Keybag {
  /// Reads the items of a keybag.
  private struct Parser {
    var salt: [UInt8] = []
    var rounds: UInt32?
    var firstSalt: [UInt8] = []
    var firstRounds: UInt32?
    var classes: [ClassKey] = []
    private var hasOwnUUID = false

    mutating func parse(_ bytes: [UInt8]) throws(KeybagError) {
      guard bytes.count <= Limit.bytes else {
        throw .limit("the keybag has \(bytes.count) bytes")
      }
      var offset = 0
      while offset < bytes.count {
        guard bytes.count - offset >= 8 else { throw .damaged("the keybag is truncated") }
        let tag = String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self)
        let length = Int(Self.number(bytes[(offset + 4)..<(offset + 8)]))
        offset += 8
        guard length <= bytes.count - offset else { throw .damaged("the keybag is truncated") }
        try take(tag, bytes[offset..<(offset + length)])
        offset += length
      }
    }

    private mutating func take(_ tag: String, _ value: ArraySlice<UInt8>) throws(KeybagError) {
      if tag == "UUID", hasOwnUUID {
        guard classes.count < Limit.classes else {
          throw .limit("the keybag has more than \(Limit.classes) classes")
        }
        classes.append(ClassKey())
      } else if tag == "UUID" {
        hasOwnUUID = true
      } else if classes.isEmpty {
        try takeOwn(tag, value)
      } else {
        try takeClass(tag, value)
      }
    }

    private mutating func takeOwn(_ tag: String, _ value: ArraySlice<UInt8>) throws(KeybagError) {
      switch tag {
      case "SALT": salt = try Self.bytes(value, limit: Limit.salt)
      case "ITER": rounds = try Self.word(value)
      case "DPSL": firstSalt = try Self.bytes(value, limit: Limit.salt)
      case "DPIC": firstRounds = try Self.word(value)
      default: break
      }
    }

    private mutating func takeClass(_ tag: String, _ value: ArraySlice<UInt8>) throws(KeybagError) {
      let last = classes.count - 1
      switch tag {
      case "CLAS": classes[last].number = try Self.word(value)
      case "WRAP": classes[last].wrapping = try Self.word(value)
      case "WPKY": classes[last].wrapped = try Self.bytes(value, limit: Limit.key)
      default: break
      }
    }

    private static func bytes(
      _ value: ArraySlice<UInt8>, limit: Int
    ) throws(KeybagError) -> [UInt8] {
      guard value.count <= limit else { throw .damaged("the keybag has a value that is too long") }
      return Array(value)
    }

    private static func word(_ value: ArraySlice<UInt8>) throws(KeybagError) -> UInt32 {
      guard value.count == 4 else { throw .damaged("the keybag has a number of another length") }
      return number(value)
    }

    private static func number(_ value: ArraySlice<UInt8>) -> UInt32 {
      value.reduce(0) { $0 << 8 | UInt32($1) }
    }
  }
}
