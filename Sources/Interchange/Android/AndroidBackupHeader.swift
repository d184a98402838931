package import SystemIO

/// The header of an Android backup (`.ab`): lines of ASCII text, each ended by a newline, before
/// the data.
///
/// | line | content |
/// | --- | --- |
/// | 1 | `ANDROID BACKUP` |
/// | 2 | the version: 1 (Android 4.0) to 5 (8.0) |
/// | 3 | `1` if the data is a zlib stream, otherwise `0` |
/// | 4 | `none` or `AES-256`, which the following lines belong to |
/// | 5 | the salt of the password's key, in hexadecimal |
/// | 6 | the salt of the master key's checksum, in hexadecimal |
/// | 7 | the rounds of PBKDF2 for both, in decimal |
/// | 8 | the initialization vector of the next line, in hexadecimal |
/// | 9 | the master key, encrypted with the password's key, in hexadecimal |
///
/// Versions 3 to 5 add members to the archive and change nothing else; the key derivation of
/// version 1 may differ (`AndroidMasterKey`).
///
/// Source: AOSP, frameworks/base, `PerformAdbBackupTask.java`, `PerformAdbRestoreTask.java` and the
/// history of versions in `UserBackupManagerService.java`.
package struct AndroidBackupHeader: Hashable, Sendable {
  /// The version: 1 to 5.
  package var version: Int
  /// Whether the data is a zlib stream.
  package var isCompressed: Bool
  /// The encryption of the data; nil for none.
  package var encryption: Encryption?

  /// Creates a header.
  package init(
    version: Int = newestVersion, isCompressed: Bool, encryption: Encryption? = nil
  ) {
    self.version = version
    self.isCompressed = isCompressed
    self.encryption = encryption
  }

  /// The version that this program writes.
  package static let newestVersion = 5
  static let magic: [UInt8] = Array("ANDROID BACKUP".utf8)

  /// The values that open the master key.
  package struct Encryption: Hashable, Sendable {
    package var passwordSalt: [UInt8]
    package var checksumSalt: [UInt8]
    /// The rounds of PBKDF2.
    package var rounds: UInt32
    /// The initialization vector with which `masterKey` is encrypted.
    package var vector: [UInt8]
    /// The encrypted master key, in whole blocks.
    package var masterKey: [UInt8]
  }
}

// MARK: - Limits

extension AndroidBackupHeader {
  /// The maximum size of a header in bytes; Android's are below 600.
  package static let sizeLimit = 4096
  /// The maximum number of PBKDF2's rounds. Android's are 10,000; a million take about a second.
  static let roundLimit: UInt32 = 1_000_000
  /// The sizes of a salt in bytes; Android's are 64.
  static let saltSizes = 1...512
  /// The sizes of the encrypted master key in bytes; Android's are 96.
  static let masterKeySizes = 16...512
}

// MARK: - Encoding

extension AndroidBackupHeader {
  /// Returns the lines of the header.
  package func encoded() -> [UInt8] {
    var lines = ["\(version)", isCompressed ? "1" : "0"]
    if let encryption {
      lines += [
        Self.cipher, Self.hex(encryption.passwordSalt), Self.hex(encryption.checksumSalt),
        "\(encryption.rounds)", Self.hex(encryption.vector), Self.hex(encryption.masterKey),
      ]
    } else {
      lines.append(Self.noCipher)
    }
    return Self.magic + lines.flatMap { [UInt8(ascii: "\n")] + Array($0.utf8) }
      + [UInt8(ascii: "\n")]
  }

  private static let cipher = "AES-256"
  private static let noCipher = "none"

  /// Returns upper-case digits, as Android writes them.
  private static func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}

// MARK: - Decoding

extension AndroidBackupHeader {
  /// Parses the header at the start of a file.
  ///
  /// - Parameters:
  ///   - bytes: The first bytes of the file, `sizeLimit` or fewer.
  ///   - count: Is set to the size of the header in bytes.
  ///   - subject: The file's path for messages.
  /// - Throws: `unknownFormat`, `unsupported`, `limitExceeded` or `damaged`.
  package init(
    _ bytes: [UInt8], count: inout Int, of subject: ByteString
  ) throws(InterchangeError) {
    var lines = Lines(bytes: bytes, subject: subject)
    guard bytes.starts(with: Self.magic), try lines.next() == Self.magic[...] else {
      throw InterchangeError(
        .unknownFormat, Self.action, subject: subject,
        reason: "it does not begin with 'ANDROID BACKUP'", offset: 0)
    }
    let version = try lines.number()
    guard (1...UInt32(Self.newestVersion)).contains(version) else {
      throw lines.fault("its version is \(version), not 1 to \(Self.newestVersion)", .unsupported)
    }
    let compression = try lines.number()
    guard compression <= 1 else {
      throw lines.fault("its compression is \(compression), not 0 or 1", .unsupported)
    }
    let cipher = ByteString(try lines.next())
    let isPlain = cipher == ByteString(Self.noCipher)
    guard isPlain || cipher == ByteString(Self.cipher) else {
      throw lines.fault("its encryption is '\(cipher)', not 'none' or 'AES-256'", .unsupported)
    }
    self.version = Int(version)
    isCompressed = compression == 1
    encryption = isPlain ? nil : try Encryption(&lines)
    count = lines.position
  }

  static let action = "read the Android backup"

  /// The lines of a header.
  struct Lines {
    let bytes: [UInt8]
    let subject: ByteString
    private(set) var position = 0
    private var start = 0

    init(bytes: [UInt8], subject: ByteString) {
      self.bytes = Array(bytes.prefix(AndroidBackupHeader.sizeLimit))
      self.subject = subject
    }

    /// Returns the next line without its newline.
    mutating func next() throws(InterchangeError) -> ArraySlice<UInt8> {
      start = position
      guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
        throw bytes.count < AndroidBackupHeader.sizeLimit
          ? fault("its header is truncated")
          : fault("its header has a line without end", .limitExceeded)
      }
      position = end + 1
      return bytes[start..<end]
    }

    /// Returns the decimal number in the next line.
    mutating func number() throws(InterchangeError) -> UInt32 {
      let line = try next()
      guard line.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = UInt32(String(decoding: line, as: UTF8.self))
      else { throw fault("its header has '\(ByteString(line.prefix(40)))' for a number") }
      return number
    }

    /// Returns the bytes that the next line has in hexadecimal.
    mutating func bytes(
      _ sizes: ClosedRange<Int>, of what: String
    ) throws(InterchangeError) -> [UInt8] {
      let line = try next()
      guard line.count % 2 == 0, sizes.contains(line.count / 2) else {
        throw fault("\(what) in its header has \(line.count) digits", .unsupported)
      }
      var values: [UInt8] = []
      for index in stride(from: line.startIndex, to: line.endIndex, by: 2) {
        guard let high = Self.digit(line[index]), let low = Self.digit(line[index + 1]) else {
          throw fault("\(what) in its header is not hexadecimal")
        }
        values.append(high << 4 | low)
      }
      return values
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
      default: nil
      }
    }

    /// Returns an error at the line last read.
    func fault(_ reason: String, _ kind: InterchangeError.Kind = .damaged) -> InterchangeError {
      InterchangeError(
        kind, AndroidBackupHeader.action, subject: subject, reason: reason, offset: UInt64(start))
    }
  }
}

extension AndroidBackupHeader.Encryption {
  fileprivate init(_ lines: inout AndroidBackupHeader.Lines) throws(InterchangeError) {
    passwordSalt = try lines.bytes(AndroidBackupHeader.saltSizes, of: "the password's salt")
    checksumSalt = try lines.bytes(AndroidBackupHeader.saltSizes, of: "the checksum's salt")
    rounds = try lines.number()
    guard (1...AndroidBackupHeader.roundLimit).contains(rounds) else {
      throw lines.fault(
        "its password wants \(rounds) rounds, and 1 to \(AndroidBackupHeader.roundLimit) are "
          + "accepted", .limitExceeded)
    }
    vector = try lines.bytes(16...16, of: "the initialization vector")
    masterKey = try lines.bytes(AndroidBackupHeader.masterKeySizes, of: "the master key")
    guard masterKey.count % 16 == 0 else {
      throw lines.fault("the master key in its header is not in whole blocks")
    }
  }
}
