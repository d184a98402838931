internal import Codecs
internal import SystemIO

/// A key file, `keys/<name>.age`: the identity of a repository, the recipients of new objects and
/// the trusted signers, encrypted with a passphrase (docs/repository-format.md, "Keys").
///
/// The text of the identity is in ordinary memory only while a file is read or written, and is
/// wiped afterwards.
struct KeyFile {
  /// The id of the repository.
  let repository: Digest
  /// The identity, which all key files of a repository share.
  let identity: AgeIdentity
  /// The identities from before rotations, the newest first, which open older objects.
  let older: [AgeIdentity]
  /// The recipients of all identities from before rotations, including those that are no longer
  /// needed: a host that knows one of them must not mistake a newer key file for an older one.
  let retired: [AgeRecipient]
  /// The recipients of new objects. Only a holder of the passphrase can change them.
  let recipients: [AgeRecipient]
  /// The trusted signers with their names, for hosts that know none yet.
  let signers: [Signer: String]

  /// The directory of all key files.
  static let directory = ObjectPath.root.appending("keys")
  /// The maximum size of a key file, in bytes.
  static let maximumSize = 64 << 10
  /// The number of a repository's key files that a passphrase is tried with. A wrong passphrase
  /// takes about half a second for each of them.
  static let maximumCount = 16
  /// The base-two logarithm of scrypt's work factor for new files: 128 MiB of memory and about half
  /// a second.
  static let workFactor = 17

  private static let format = "sandboxctl-key"
  private static let version: UInt64 = 1
  private static let suffix = ".age"
  private static let maximumName = 64

  /// The reason why a file does not open.
  enum Refusal: Error {
    /// It is encrypted with another passphrase.
    case wrongPassphrase
    /// It is damaged, or not a key file of this version: a clause without its subject.
    case unusable(String)
  }
}

// MARK: - Names

extension KeyFile {
  /// Whether a text is the name of a key: a letter or a digit, and at most 63 of these, `.`, `_`
  /// and `-`.
  static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, text.utf8.count <= maximumName else { return false }
    return isLetterOrDigit(first) && text.utf8.allSatisfy(isNameByte)
  }

  /// Returns the name of the key of a host: that of the host, with other characters replaced.
  static func name(ofHost host: String) -> String {
    let bytes = host.utf8.map { isNameByte($0) ? $0 : UInt8(ascii: "-") }
      .drop { !isLetterOrDigit($0) }.prefix(maximumName)
    return bytes.isEmpty ? "host" : String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the path of a key.
  static func path(_ name: String) -> ObjectPath { directory.appending(ByteString(name + suffix)) }

  /// Returns the name of the key in a file, or nil if the file's name is not that of a key file.
  static func name(of file: ByteString) -> String? {
    guard let text = file.utf8, text.hasSuffix(suffix) else { return nil }
    let name = String(text.dropLast(suffix.utf8.count))
    return isName(name) ? name : nil
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
      || byte == UInt8(ascii: "-")
  }
}

// MARK: - Writing

extension KeyFile {
  /// Creates the key file of a repository.
  init(
    of repository: Digest, identity: AgeIdentity, older: [AgeIdentity] = [],
    retired: [AgeRecipient] = [], recipients: [AgeRecipient], signers: [Signer: String] = [:]
  ) {
    (self.repository, self.identity, self.older) = (repository, identity, older)
    (self.retired, self.recipients, self.signers) = (retired, recipients, signers)
  }

  /// Returns the file for a passphrase.
  ///
  /// - Parameter workFactor: the base-two logarithm of scrypt's work factor.
  /// - Throws: `library` without enough memory for scrypt.
  func encrypted(
    with passphrase: AgePassphrase, workFactor: Int = KeyFile.workFactor
  ) throws(AgeError) -> [UInt8] {
    var plain = encode()
    defer { plain.wipe() }
    return try AgeFile(for: passphrase, workFactor: workFactor).encrypt(plain.span)
  }

  /// Returns the text, in memory that is not moved while it is written. The caller wipes it.
  func encode() -> [UInt8] {
    let first: JSON = [
      "format": .string(Self.format), "version": .count(Self.version),
      "repository": .string(repository.hex),
    ]
    let signers = self.signers.map { ($0.key.description, $0.value) }.sorted { $0.0 < $1.0 }
    let last: JSON = [
      "recipients": .array(recipients) { .string($0.description) },
      "signers": .array(signers) { ["signer": .string($0.0), "name": .string($0.1)] },
      "created": .string(Host.now().rfc3339), "host": .string(Host.name),
      "user": .string(Host.userName(Host.userID) ?? String(Host.userID)),
    ]
    let former: JSON = ["retired": .array(retired) { .string($0.description) }]
    let rest = (retired.isEmpty ? [] : former.members ?? []) + (last.members ?? [])
    let head = first.compactBytes.dropLast()
    let tail = JSON.object(rest).compactBytes.dropFirst()
    var text: [UInt8] = []
    text.reserveCapacity(
      head.count + tail.count + 64 + (older.count + 1) * Self.roomOfIdentity)
    text.append(contentsOf: head)
    text.append(contentsOf: #","identity":"#.utf8)
    Self.append(identity, to: &text)
    if let first = older.first {
      text.append(contentsOf: #","older":["#.utf8)
      Self.append(first, to: &text)
      for identity in older.dropFirst() {
        text.append(UInt8(ascii: ","))
        Self.append(identity, to: &text)
      }
      text.append(UInt8(ascii: "]"))
    }
    text.append(UInt8(ascii: ","))
    text.append(contentsOf: tail)
    text.append(UInt8(ascii: "\n"))
    return text
  }

  /// The memory for the text of an identity, which has 74 characters, with its quotes and a comma.
  private static let roomOfIdentity = 80

  /// Appends the text of an identity in quotes.
  private static func append(_ identity: AgeIdentity, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "\""))
    identity.text().withBytes { bytes in
      for index in bytes.indices { text.append(bytes[index]) }
    }
    text.append(UInt8(ascii: "\""))
  }
}

// MARK: - Reading

extension KeyFile {
  /// Opens a file with a passphrase.
  init(_ stored: [UInt8], openedWith passphrase: AgePassphrase) throws(Refusal) {
    var plain: [UInt8]
    do throws(AgeError) {
      plain = try AgeFile(opening: stored.span, with: passphrase).decrypt(stored.span)
    } catch {
      throw error.kind == .noMatch ? Refusal.wrongPassphrase : Refusal.unusable(error.reason)
    }
    defer { plain.wipe() }
    try self.init(&plain)
  }

  /// Returns why a file cannot be a key file, or nil if it may be one. No passphrase is needed.
  static func fault(of stored: [UInt8]) -> String? {
    do throws(AgeError) {
      let header = try AgeHeader(stored.span)
      return header.hasPassphrase ? nil : "it is not encrypted with a passphrase"
    } catch {
      return error.reason
    }
  }

  /// Reads the text. The identities are read from their bytes and then masked, so that no other
  /// value contains them.
  init(_ plain: inout [UInt8]) throws(Refusal) {
    let identities = try Self.takeIdentities(in: &plain)
    guard !identities.isEmpty else { throw Refusal.unusable("it contains no identity") }
    let json: JSON
    do throws(CodecError) {
      json = try JSON(parsing: plain)
    } catch {
      throw Refusal.unusable("it is not JSON: \(error.reason)")
    }
    guard json["format"]?.string == Self.format else {
      throw Refusal.unusable("it is not a key of sandboxctl")
    }
    guard let version = json["version"]?.integer, version == Int64(Self.version) else {
      throw Refusal.unusable("its version is not \(Self.version): use a newer sandboxctl")
    }
    let older = (json["older"]?.array ?? []).map { $0.string.flatMap { identities[$0] } }
    guard let repository = json["repository"]?.string.flatMap({ Digest(hex: $0) }),
      let identity = json["identity"]?.string.flatMap({ identities[$0] }),
      let recipients = Self.recipients(in: json, "recipients"),
      recipients.contains(identity.recipient), let retired = Self.recipients(in: json, "retired"),
      !older.contains(where: { $0 == nil })
    else { throw Refusal.unusable("it lacks a valid id, identity or recipient") }
    (self.repository, self.recipients, self.retired) = (repository, recipients, retired)
    (self.identity, self.older) = (identity, older.compactMap(\.self))
    signers = Self.signers(in: json)
  }

  /// Reads each text that begins like an identity, up to the end of its string, and masks it by its
  /// number. Returns the identities by these masks.
  private static func takeIdentities(
    in text: inout [UInt8]
  ) throws(Refusal) -> [String: AgeIdentity] {
    let mark = Array("AGE-SECRET-KEY-1".utf8)
    var identities: [String: AgeIdentity] = [:]
    var next = text.startIndex
    while let start = text[next...].indices.first(where: {
      text[$0] == mark[0] && text[$0...].starts(with: mark)
    }), let end = text[start...].firstIndex(of: UInt8(ascii: "\"")) {
      let identity: AgeIdentity
      do throws(AgeError) {
        identity = try AgeIdentity(text.span.extracting(start..<end))
      } catch {
        throw Refusal.unusable("its identity is invalid: \(error.reason)")
      }
      let number = Array("\(identities.count)".utf8)
      for index in start..<end {
        text[index] = index - start < number.count ? number[index - start] : UInt8(ascii: "*")
      }
      identities[String(decoding: text[start..<end], as: UTF8.self)] = identity
      next = end
    }
    return identities
  }

  /// Returns the signers. A signer of a type unknown to this version is not trusted, and a name
  /// that cannot be printed is omitted.
  private static func signers(in json: JSON) -> [Signer: String] {
    var signers: [Signer: String] = [:]
    for element in json["signers"]?.array ?? [] {
      guard let signer = element["signer"]?.string.flatMap({ try? Signer($0) }) else { continue }
      let name = element["name"]?.string ?? ""
      signers[signer] = TrustedSigners.isName(name) ? name : ""
    }
    return signers
  }

  /// Returns the recipients in a member, or nil if one is invalid.
  private static func recipients(in json: JSON, _ member: String) -> [AgeRecipient]? {
    var recipients: [AgeRecipient] = []
    for element in json[member]?.array ?? [] {
      guard let recipient = element.string.flatMap({ try? AgeRecipient($0) }) else { return nil }
      recipients.append(recipient)
    }
    return recipients
  }
}
