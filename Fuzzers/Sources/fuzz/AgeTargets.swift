@testable import ArchiveStore
@testable import Codecs

extension Target {
  /// Age files and keys.
  static let ageTargets = [
    Target(name: "age-header", run: ageHeader),
    Target(name: "age-armor", run: ageArmor),
    Target(name: "age-keys", run: ageKeys),
    Target(name: "age-stream", run: ageStream),
    Target(name: "repository-key", run: repositoryKey),
  ]

  /// A header. An accepted one must encode to the same bytes, except for its MAC.
  @Sendable private static func ageHeader(_ bytes: [UInt8]) {
    _ = try? AgeFile(opening: bytes.span, with: [AgeFuzz.identity])
    guard let header = try? AgeHeader(bytes.span) else { return }
    require(header.count == AgeHeader.count(in: bytes.span), "the end of a header is not found")
    var written = AgeHeaderParser.versionLine
    for stanza in header.stanzas { stanza.encode(to: &written) }
    require(
      bytes.starts(with: written)
        && header.count == written.count + AgeHeaderParser.macLineCount,
      "a decoded header encodes to different bytes")
    let key = AgeFuzz.fileKey()
    guard let again = try? AgeHeader.encode(header.stanzas, authenticatedBy: key),
      let read = try? AgeHeader(again.span), (try? read.verify(with: key)) != nil
    else { fatalError("a decoded header cannot be written again") }
    require(read.stanzas == header.stanzas, "stanzas changed when they were written and read again")
  }

  /// An armored file. An accepted one may differ from its canonical form only in white space at its
  /// ends and in carriage returns.
  @Sendable private static func ageArmor(_ bytes: [UInt8]) {
    _ = AgeArmor.isArmored(bytes.span)
    let armored = AgeArmor.encode(bytes)
    require((try? AgeArmor.decode(armored)) == bytes, "armor is decoded to different bytes")
    guard let file = try? AgeArmor.decode(bytes) else { return }
    require(AgeArmor.isArmored(bytes.span), "an accepted file does not seem armored")
    let canonical = AgeArmor.encode(file)[...].trimmed
    let given = bytes[...].trimmed.filter { $0 != UInt8(ascii: "\r") }
    require(canonical.elementsEqual(given), "a decoded file is armored differently")
    _ = try? AgeHeader(file.span)
  }

  /// Lists of identities and recipients, and a single one. An accepted one must encode to the same
  /// text.
  @Sendable private static func ageKeys(_ bytes: [UInt8]) {
    _ = try? AgeKeyList.identities(bytes.span)
    _ = try? AgeKeyList.recipients(bytes.span)
    if let identity = try? AgeIdentity(bytes.span) {
      let isSame = identity.text().withBytes { text in
        text.count == bytes.count && text.indices.allSatisfy { text[$0] == bytes[$0] }
      }
      require(isSame, "an identity is written differently")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard let recipient = try? AgeRecipient(text) else { return }
    require(Array(recipient.description.utf8) == bytes, "a recipient is written differently")
  }

  /// The decrypted text of a key file. In an accepted one the identities were masked before it was
  /// parsed as JSON, and it has the same content after writing and reading it again.
  @Sendable private static func repositoryKey(_ bytes: [UInt8]) {
    var plain = bytes
    guard let key = try? KeyFile(&plain) else { return }
    require(plain.count == bytes.count, "the size of the text changed")
    for identity in [key.identity] + key.older {
      let secret = identity.text().withBytes { text in text.indices.map { text[$0] } }
      require(bytes.firstRange(of: secret) != nil, "another identity was read")
      require(plain.firstRange(of: secret) == nil, "an identity was not masked")
    }
    require(key.recipients.contains(key.identity.recipient), "the identity has no recipient")
    require(
      key.signers.values.allSatisfy { $0.isEmpty || TrustedSigners.isName($0) },
      "a name of a signer cannot be printed")
    var text = key.encode()
    guard let again = try? KeyFile(&text) else { fatalError("a key file cannot be read again") }
    require(
      again.repository == key.repository && again.recipients == key.recipients
        && again.signers == key.signers && again.identity.recipient == key.identity.recipient
        && again.older.map(\.recipient) == key.older.map(\.recipient),
      "a key file changed when it was written and read again")
  }

  /// A payload described by the input: its size, portions and a range; then a change of the stored
  /// bytes, which must be detected.
  @Sendable private static func ageStream(_ bytes: [UInt8]) {
    guard let plan = AgeFuzz.Plan(bytes) else { return }
    let (plain, file) = (plan.plain, AgeFuzz.file)
    let whole = file.encrypt(plain.span)
    var stored: [UInt8] = []
    var encryptor = AgeEncryptor(file)
    for run in plan.runs(of: plain.count) {
      encryptor.encrypt(plain.span.extracting(run), appendingTo: &stored)
    }
    encryptor.finish(appendingTo: &stored)
    require(stored == whole, "portions are encrypted to different bytes")
    require(plan.decrypt(whole, file) == plain, "portions are decrypted to different bytes")
    require(plan.readRange(of: whole, file) == Array(plain[plan.range]), "a range is different")
    let changed = plan.change(whole, after: file.head.count)
    guard changed != whole else { return }
    require(plan.decrypt(changed, file) == nil, "a change of the payload was not found")
  }
}

/// The keys of the targets, which are always the same, and the decoding of their inputs.
enum AgeFuzz {
  static let identityText =
    "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
  static let recipientText = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

  static let identity: AgeIdentity = {
    guard let identity = try? AgeIdentity(Array(identityText.utf8).span) else {
      fatalError("the identity of the specification is refused")
    }
    return identity
  }()

  static func fileKey() -> AgeFileKey {
    AgeFileKey(copying: [UInt8](repeating: 5, count: AgeFileKey.byteCount).span)
  }

  /// The bytes of a header, which are always the same.
  static let header: [UInt8] = {
    let key = fileKey()
    let ephemeral = SecretBytes(
      copying: [UInt8](repeating: 6, count: AgeStanza.shareCount).span, locked: false)
    let stanza = identity.recipient.wrap(key, ephemeral: ephemeral)
    guard let header = try? AgeHeader.encode([stanza], authenticatedBy: key) else {
      fatalError("a header cannot be encoded")
    }
    return header
  }()

  static let file: AgeFile = {
    let head = header + [UInt8](repeating: 7, count: AgePayload.nonceCount)
    guard let file = try? AgeFile(opening: head.span, with: [identity]) else {
      fatalError("a new file cannot be opened")
    }
    return file
  }()

  /// A payload: the first ten bytes of an input are numbers, and the others are repeated.
  struct Plan {
    let plain: [UInt8]
    let range: Range<Int>
    private let portion: Int
    private let position: Int
    private let kind: UInt8

    init?(_ bytes: [UInt8]) {
      guard bytes.count >= 10 else { return nil }
      let size = Int(LittleEndian.word32(bytes.span, at: 0) & 0x3FFFF)
      portion = 1 + Int(LittleEndian.integer(bytes.span, at: 3, as: UInt16.self)) * 3
      position = Int(LittleEndian.integer(bytes.span, at: 5, as: UInt32.self) & 0xFFFFFF)
      kind = bytes[9]
      let pattern = bytes.count > 10 ? Array(bytes[10...]) : [0]
      plain = (0..<size).map { pattern[$0 % pattern.count] }
      let low = position % (size + 1)
      range = low..<(low + portion % (size - low + 1))
    }

    func runs(of size: Int) -> [Range<Int>] {
      // Short portions of a large payload would only take time.
      let width = max(portion, size / 64 + 1)
      return stride(from: 0, to: size, by: width).map { $0..<min(size, $0 + width) }
    }

    func decrypt(_ stored: [UInt8], _ file: AgeFile) -> [UInt8]? {
      var plain: [UInt8] = []
      var decryptor = AgeDecryptor(file)
      do {
        for run in runs(of: stored.count - file.head.count) {
          let start = file.head.count + run.lowerBound
          try decryptor.decrypt(
            stored.span.extracting(start..<(start + run.count)), appendingTo: &plain)
        }
        try decryptor.finish(appendingTo: &plain)
      } catch { return nil }
      return plain
    }

    func readRange(of stored: [UInt8], _ file: AgeFile) -> [UInt8]? {
      let wanted = UInt64(range.lowerBound)..<UInt64(range.upperBound)
      let size = UInt64(stored.count)
      var buffer: [UInt8] = []
      guard let position = try? file.storedRange(of: wanted, size: size) else { return nil }
      let read = stored.span.extracting(Int(position.lowerBound)..<Int(position.upperBound))
      do { try file.open(wanted, stored: read, size: size, appendingTo: &buffer) } catch {
        return nil
      }
      return buffer
    }

    /// Returns the stored bytes with a change after the head.
    func change(_ stored: [UInt8], after head: Int) -> [UInt8] {
      let position = head + position % (stored.count - head)
      var changed = stored
      switch kind % 4 {
      case 0: changed[position] ^= 1 << (kind >> 5)
      case 1: changed.removeSubrange(position...)
      case 2:
        changed.removeSubrange(position..<min(stored.count, position + AgePayload.storedCount))
      default: changed += stored[position...]
      }
      return changed
    }
  }

  // MARK: - Seeds

  /// Texts of key files: minimal, with all members, with members of a later version, and with
  /// hidden identities.
  private static var keyFiles: [String] {
    let id = String(repeating: "07", count: 32)
    let signer = "sbxsig184qp0slggwy44y4hp2n56xm7hjwfstx09mzfdrxqe42lz2h5vcxqat6kr0"
    let head = #"{"format":"sandboxctl-key","version":1,"repository":"\#(id)","#
    let least =
      head + #""identity":"\#(identityText)","recipients":["\#(recipientText)"]"#
    let escaped = #"\u0041"# + identityText.dropFirst()
    return [
      least + "}",
      least + #","signers":[{"signer":"\#(signer)","name":"nas"}],"#
        + #""created":"2026-11-27T12:00:00Z","host":"host","user":"user"}"# + "\n",
      least + #","signers":[{"signer":"\#(signer)","name":"a\nb"},{"signer":"later1","#
        + #""name":1},{"name":"x"}],"later":{"a":[null,true]}}"#,
      head + #""identity":"\#(escaped)","recipients":["\#(recipientText)"]}"#,
      #"{"user":"\#(identityText)","# + least.dropFirst() + "}",
    ]
  }

  /// A header, also with grease stanzas and with a passphrase; armor in its forms; keys; and
  /// payloads at the boundaries of pieces.
  static var seeds: [(target: String, bytes: [UInt8])] {
    let texts = [
      """
      age-encryption.org/v1
      -> scrypt rF0/NwblUHHTpgQgRpe5CQ 10
      gUjEymFKMVXQEKdMMHL24oYexjE3TIC0O0zGSqJ2aUY
      --- IOXiQYStkoT1mvZW2tFOqZdhRVvj58egABx/sWfZQbc

      """,
      """
      age-encryption.org/v1
      -> x-grease a b
      AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA

      --- IOXiQYStkoT1mvZW2tFOqZdhRVvj58egABx/sWfZQbc

      """,
    ]
    let headers = [header] + texts.map { Array($0.utf8) }
    let armored = headers.map { AgeArmor.encode($0) }
    let keys = [
      identityText, recipientText, "# comment\n\(identityText)\r\n\n\(identityText)\n",
      "#\n\(recipientText)\nssh-ed25519 AAAA\nage1pq1qqqq\nage1yubikey1qqqq\n",
      "AGE-PLUGIN-X-1QQQQ",
    ]
    let returns = armored[0].flatMap { $0 == 10 ? [13, 10] : [$0] }
    var seeds = headers.map { ("age-header", $0) } + (armored + [returns]).map { ("age-armor", $0) }
    seeds += keys.map { ("age-keys", Array($0.utf8)) }
    seeds += keyFiles.map { ("repository-key", Array($0.utf8)) }
    for (number, size) in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000].enumerated() {
      var seed: [UInt8] = []
      LittleEndian.append(UInt32(size), to: &seed)
      seed += [UInt8(number), 0, 1, 0, 0, UInt8(number * 37), 1, 2, 3]
      seeds.append(("age-stream", seed))
    }
    return seeds
  }
}
