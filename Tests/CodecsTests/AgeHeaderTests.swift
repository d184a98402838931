import Testing

@testable import Codecs

/// Headers: several recipients, passphrases, grease, new recipients for an existing file, and
/// damage.
struct AgeHeaderTests {
  private static let plain = Array("some bytes".utf8)

  @Test func eachRecipientOpensAFileAndNobodyElse() throws {
    let identities = (0..<3).map { _ in AgeIdentity() }
    let file = try AgeFile(for: identities.map(\.recipient)).encrypt(Self.plain.span)
    for identity in identities {
      #expect(try AgeFixture.decrypt(file, with: [AgeIdentity(), identity]) == Self.plain)
    }
    let error = AgeFixture.refusal { () throws(AgeError) in
      try AgeFixture.decrypt(file, with: [AgeIdentity()])
    }
    #expect(error?.kind == .noMatch)
    #expect(error?.reason == "no identity matches any of its 3 recipients")
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try AgeFixture.decrypt(file, with: AgeFixture.passphrase("x"))
      }?.reason == "it is not encrypted with a passphrase")
  }

  @Test func aPassphraseOpensAFile() throws {
    let file = try AgeFile(for: AgeFixture.passphrase("secret"), workFactor: 2)
      .encrypt(Self.plain.span)
    #expect(try AgeHeader(file.span).hasPassphrase)
    #expect(try AgeFixture.decrypt(file, with: AgeFixture.passphrase("secret")) == Self.plain)
    let wrong = AgeFixture.refusal { () throws(AgeError) in
      try AgeFixture.decrypt(file, with: AgeFixture.passphrase("Secret"))
    }
    #expect(wrong?.kind == .noMatch && wrong?.reason == "the passphrase is wrong")
    let other = AgeFixture.refusal { () throws(AgeError) in
      try AgeFixture.decrypt(file, with: [AgeIdentity()])
    }
    #expect(other?.reason == "it is encrypted with a passphrase")
  }

  @Test func theWorkFactorIsLimitedBeforeAnyWork() throws {
    let file = try AgeFile(for: AgeFixture.passphrase("secret"), workFactor: 5)
      .encrypt(Self.plain.span)
    let passphrase = try AgeFixture.passphrase("secret")
    let error = AgeFixture.refusal { () throws(AgeError) in
      try AgeFile(opening: file.span, with: passphrase, maximumWorkFactor: 4)
    }
    #expect(error?.kind == .limit)
    #expect(error?.reason == "the work factor of scrypt is 5, more than 4")
    _ = try AgeFile(opening: file.span, with: passphrase, maximumWorkFactor: 5)
  }

  @Test func stanzasOfOtherTypesAreIgnored() throws {
    let identity = AgeIdentity()
    let key = AgeFileKey()
    let grease = try AgeStanza(
      arguments: ["~-grease", "a", "b"], body: [UInt8](repeating: 1, count: 96))
    let header = try AgeHeader.encode(
      [grease, identity.recipient.wrap(key), grease], authenticatedBy: key)
    let nonce = [UInt8](repeating: 3, count: 16)
    let file = try AgeFile(opening: (header + nonce).span, with: [identity])
    #expect(file.head == header + nonce)
    #expect(try AgeHeader(header.span).stanzas.count == 3)
  }

  /// A rewritten header opens with the new identity only, and the payload stays the same.
  @Test func aHeaderForOtherRecipientsKeepsThePayload() throws {
    let (old, new, recovery) = (AgeIdentity(), AgeIdentity(), AgeIdentity())
    let file = try AgeFile(for: [old.recipient]).encrypt(Self.plain.span)
    let count = try AgeHeader(file.span).count
    let header = try AgeFile.header(
      of: file.span, openedWith: [old], for: [new.recipient, recovery.recipient])
    let rewritten = header + file[count...]
    #expect(try AgeFixture.decrypt(rewritten, with: [new]) == Self.plain)
    #expect(try AgeFixture.decrypt(rewritten, with: [recovery]) == Self.plain)
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try AgeFixture.decrypt(rewritten, with: [old])
      }?.kind == .noMatch)
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try AgeFile.header(of: file.span, openedWith: [new], for: [new.recipient])
      }?.kind == .noMatch)
  }

  @Test func noTwoFilesShareAKeyShareOrNonce() throws {
    let identity = AgeIdentity()
    let files = try (0..<4).map { _ in try AgeFile(for: [identity.recipient]) }
    #expect(Set(files.map { $0.head.suffix(16) }).count == 4)
    #expect(Set(files.map { $0.head.prefix(70) }).count == 4)
    let empty: [UInt8] = []
    #expect(Set(files.map { $0.encrypt(empty.span).suffix(16) }).count == 4)
  }

  // MARK: - Sizes

  @Test func theEndOfAHeaderIsFoundInAPrefix() throws {
    let head = try AgeFile(for: [AgeIdentity().recipient]).head
    for count in 0..<(head.count - 16) {
      #expect(AgeHeader.count(in: head.span.extracting(first: count)) == nil)
    }
    #expect(AgeHeader.count(in: head.span) == head.count - 16)
    #expect(AgeFile.headCount(in: head.span.extracting(first: head.count - 16)) == head.count)
  }

  @Test func headersAreLimitedTo64KiB() throws {
    let recipient = AgeIdentity().recipient
    let error = AgeFixture.refusal { () throws(AgeError) in
      try AgeFile(for: [AgeRecipient](repeating: recipient, count: 700))
    }
    #expect(error?.kind == .limit)
    // The largest accepted header, and one that is a byte longer.
    for (excess, isAccepted) in [(0, true), (1, false)] {
      let key = AgeFileKey()
      let body = try AgeStanza(arguments: ["x"], body: [])
      let small = try AgeHeader.encode([body], authenticatedBy: key).count
      let argument = String(repeating: "x", count: AgeHeader.maximumCount - small + 1 + excess)
      var header = AgeHeaderParser.versionLine
      try AgeStanza(arguments: [argument], body: []).encode(to: &header)
      header += Array("---".utf8)
      let mac = Base64.encode(key.headerMAC(of: header.span), padded: false)
      header += Array(" \(mac)\n".utf8)
      #expect(header.count == AgeHeader.maximumCount + excess)
      if isAccepted {
        #expect(try AgeHeader(header.span).count == header.count)
      } else {
        let error = AgeFixture.refusal { () throws(AgeError) in try AgeHeader(header.span) }
        #expect(error?.kind == .header && error?.reason == "the header exceeds 64 KiB")
      }
    }
  }

  // MARK: - Damage

  @Test func everyTruncatedFileIsRefused() throws {
    let identity = AgeIdentity()
    let file = try AgeFile(for: [AgeIdentity().recipient, identity.recipient])
      .encrypt(Self.plain.span)
    let head = try AgeHeader(file.span).count + AgePayload.nonceCount
    for count in 0..<file.count {
      let error = AgeFixture.refusal { () throws(AgeError) in
        try AgeFixture.decrypt(Array(file[..<count]), with: [identity])
      }
      #expect(error?.kind == (count < head ? .header : .payload), "\(count) bytes")
    }
  }

  @Test func everyFlippedBitIsFound() throws {
    let identity = AgeIdentity()
    let file = try AgeFile(for: [identity.recipient, AgeIdentity().recipient])
      .encrypt(Self.plain.span)
    let head = try AgeHeader(file.span).count + AgePayload.nonceCount
    for index in file.indices {
      for bit in 0..<8 {
        var other = file
        other[index] ^= 1 << bit
        let error = AgeFixture.refusal { () throws(AgeError) in
          try AgeFixture.decrypt(other, with: [identity])
        }
        let kinds: [AgeError.Kind] =
          index < head - 16 ? [.header, .headerMAC, .noMatch] : [.payload]
        #expect(error.map { kinds.contains($0.kind) } == true, "byte \(index), bit \(bit)")
      }
    }
  }

  @Test func aMissingStanzaIsFoundByTheMAC() throws {
    let identity = AgeIdentity()
    let key = AgeFileKey()
    let stanzas = [identity.recipient.wrap(key), AgeIdentity().recipient.wrap(key)]
    let whole = try AgeHeader.encode(stanzas, authenticatedBy: key)
    var header = AgeHeaderParser.versionLine
    stanzas[0].encode(to: &header)
    header += whole.suffix(AgeHeaderParser.macLineCount)
    let error = AgeFixture.refusal { () throws(AgeError) in
      try AgeFile(opening: (header + [UInt8](repeating: 0, count: 16)).span, with: [identity])
    }
    #expect(error?.kind == .headerMAC)
  }
}
