import Testing

@testable import Codecs

/// Identities, recipients and passphrases, and lists of them.
struct AgeKeyTests {
  @Test func examplesOfTheSpecificationAreReadAndWritten() throws {
    let identity = try AgeFixture.key(AgeFixture.identity)
    #expect(identity.recipient.description == AgeFixture.recipient)
    #expect(AgeFixture.text(identity) == AgeFixture.identity)
    let recipient = try AgeRecipient(AgeFixture.recipient)
    #expect(recipient == identity.recipient && recipient.description == AgeFixture.recipient)
  }

  @Test func identitiesOfAnotherProgramHaveItsRecipients() throws {
    #expect(
      try AgeFixture.key(AgeFixture.first).recipient.description == AgeFixture.firstRecipient)
    #expect(
      try AgeFixture.key(AgeFixture.second).recipient.description == AgeFixture.secondRecipient)
  }

  @Test func newIdentitiesDifferAndSurviveTheirText() throws {
    let identities = (0..<8).map { _ in AgeIdentity() }
    #expect(Set(identities.map(\.recipient)).count == 8)
    for identity in identities {
      let again = try AgeFixture.key(AgeFixture.text(identity))
      #expect(again.recipient == identity.recipient)
    }
  }

  /// Every changed, missing or duplicated character is detected.
  @Test func mistypedKeysAreRefused() {
    for text in [AgeFixture.identity, AgeFixture.recipient] {
      let bytes = Array(text.utf8)
      var others: [[UInt8]] = []
      for index in bytes.indices {
        others.append(bytes.replacing(index, with: [bytes[index] ^ 1]))
        others.append(bytes.replacing(index, with: []))
        others.append(bytes.replacing(index, with: [bytes[index], bytes[index]]))
        others.append(bytes.replacing(index, with: [bytes[index] ^ 0x20]))
      }
      for other in others where other != bytes {
        let shown = String(decoding: other, as: UTF8.self)
        let identity = AgeFixture.refusal { () throws(AgeError) in try AgeIdentity(other.span) }
        let recipient = AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(shown) }
        #expect(identity?.kind == .key && recipient?.kind == .key, "\(shown)")
      }
    }
  }

  /// Bech32 text of the right form, but in the wrong case or of the wrong length.
  @Test func keysInTheOtherCaseOrOfAnotherLengthAreRefused() {
    let upper = AgeFixture.recipient.uppercased()
    let lower = AgeFixture.identity.lowercased()
    #expect(AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(upper) }?.kind == .key)
    #expect(AgeFixture.refusal { () throws(AgeError) in try AgeFixture.key(lower) }?.kind == .key)
    for count in [0, 16, 31, 33, 64] {
      let data = [UInt8](repeating: 9, count: count)
      let identity = Bech32.encode(data.span, prefix: "AGE-SECRET-KEY-")
      let recipient = Bech32.encode(data.span, prefix: "age")
      #expect(throws: AgeError.self) { try identity.withBytes { try AgeIdentity($0) } }
      let text = recipient.withBytes { text in
        String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
      }
      let error = AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(text) }
      #expect(error?.reason.contains("\(count) bytes") == true)
    }
  }

  @Test func recipientsOfLowOrderAreRefused() {
    for first: UInt8 in [0, 1] {
      let point = [first] + [UInt8](repeating: 0, count: 31)
      let error = AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(point: point) }
      #expect(error?.kind == .key && error?.reason == "it is a point of low order")
    }
  }

  /// The valid and invalid texts in BIP 173, section "Test vectors", and two whose bits do not form
  /// whole bytes.
  @Test func bech32MatchesItsSpecification() throws {
    let valid = [
      "A12UEL5L", "a12uel5l",
      "11qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqc8247j",
      "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
      "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
    ]
    for text in valid {
      let decoded = try Bech32(Array(text.utf8).span)
      let again = decoded.data.withBytes { Bech32.encode($0, prefix: decoded.prefix) }
      again.withBytes { bytes in
        #expect(bytes.indices.map { bytes[$0] } == Array(text.utf8))
      }
    }
    let invalid = [
      "age1qqqyst3gn": "whole number of bytes", "age1qpu0j2ex": "whole number of bytes",
      "\u{20}1nwldj5": "not Bech32", "pzry9x0s0muk": "not Bech32", "1pzry9x0s0muk": "not Bech32",
      "x1b4n0q5v": "character 3", "li1dgmt3": "not Bech32", "A1G7SGD8": "checksum",
      "a12UEL5L": "upper and lower case",
    ]
    for (text, reason) in invalid {
      let error = AgeFixture.refusal { () throws(AgeError) in
        let decoded = try Bech32(Array(text.utf8).span)
        return decoded.prefix
      }
      #expect(error?.kind == .key && error?.reason.contains(reason) == true, "\(text)")
    }
  }

  // MARK: - Unsupported types

  @Test func otherTypesOfRecipientsAreRefusedByName() {
    let names = [
      "age1pq1x34nzsvr0rxjsgdn8zgyhfe8j7ceq5r9rdelk": "post-quantum recipient (age1pq1…",
      "age1tag1qt8lw0ual6avlwmwatk888yqnmdamm7xfd0wak53ut6elz5c4swx2yqdj4e": "tagged recipients",
      "age1tagpq1m3e4wvp6hzcrn9exhy0ae3xfx2sj": "MLKEM768-P256",
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl":
        "SSH keys",
      "ecdsa-sha2-nistp256 AAAA": "SSH keys",
    ]
    for (text, name) in names {
      let error = AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(text) }
      #expect(error?.kind == .unsupported && error?.reason.contains(name) == true, "\(text)")
    }
  }

  @Test func recipientsOfPluginsAreRefusedByName() {
    let data: [UInt8] = [2, 3, 5]
    let text = Bech32.encode(data.span, prefix: "age1yubikey").withBytes { text in
      String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }
    let error = AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(text) }
    #expect(error?.kind == .unsupported)
    #expect(error?.reason == "recipients of the plugin 'yubikey' are not supported")
  }

  @Test func otherTypesOfIdentitiesAreRefusedByNameWithoutTheirText() {
    let names: [(String, AgeError.Kind, String)] = [
      (
        "AGE-SECRET-KEY-PQ-1XX76JRALNLXDMEW0CRK45QMCCH4X06SE84UN3VPM33W6HWDX0H3SK3ZQFR",
        .unsupported, "post-quantum identity"
      ),
      ("AGE-PLUGIN-YUBIKEY-1GKZHGQVZRJ2M5CC0QPL7N", .unsupported, "plugins"),
      ("-----BEGIN OPENSSH PRIVATE KEY-----", .unsupported, "SSH keys"),
      ("-----BEGIN AGE ENCRYPTED FILE-----", .key, "decrypt it first"),
      ("age-encryption.org/v1", .key, "decrypt it first"),
      (AgeFixture.recipient, .key, "it is a recipient"),
    ]
    for (text, kind, name) in names {
      let error = AgeFixture.refusal { () throws(AgeError) in try AgeFixture.key(text) }
      #expect(error?.kind == kind && error?.reason.contains(name) == true, "\(text)")
    }
    let error = AgeFixture.refusal { () throws(AgeError) in try AgeRecipient(AgeFixture.first) }
    #expect(error?.reason == "it is an identity, which is secret, and not a recipient")
  }

  // MARK: - Lists

  @Test func listsHaveOneKeyInEachLine() throws {
    let text = "# created: today\n\(AgeFixture.first)\r\n\n\(AgeFixture.second)"
    let identities = try AgeKeyList.identities(Array(text.utf8).span)
    #expect(
      identities.map(\.recipient.description)
        == [AgeFixture.firstRecipient, AgeFixture.secondRecipient])
    let recipients = "\(AgeFixture.firstRecipient)\n#\n\(AgeFixture.secondRecipient)\n"
    #expect(try AgeKeyList.recipients(Array(recipients.utf8).span) == identities.map(\.recipient))
  }

  /// As `age -i` does with a plugin that is not needed. A recipient that is not supported is never
  /// skipped, since it could not decrypt.
  @Test func identitiesOfPluginsAreSkippedBesideOthers() throws {
    let plugin = "AGE-PLUGIN-YUBIKEY-1QQPQQYCRQQ"
    let text = Array("\u{feff}# key\n\(plugin)\n\(AgeFixture.first)\n".utf8)
    let identities = try AgeKeyList.identities(text.span)
    #expect(identities.map(\.recipient.description) == [AgeFixture.firstRecipient])
    let marked = Array("\u{feff}\(AgeFixture.firstRecipient)\n".utf8)
    #expect(try AgeKeyList.recipients(marked.span).count == 1)
    let alone = Array("# key\n\(plugin)\n".utf8)
    let error = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.identities(alone.span) }
    #expect(error?.kind == .unsupported && error?.reason.hasPrefix("line 2: ") == true)
    let tagged = Array("\(AgeFixture.firstRecipient)\nage1tag1x\n".utf8)
    let other = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.recipients(tagged.span) }
    #expect(other?.kind == .unsupported)
  }

  @Test func faultsOfAListNameTheLineAndNoSecret() {
    var secret = AgeFixture.first
    secret.removeLast()
    let text = Array("# comment\n\(AgeFixture.second)\n\(secret)\n".utf8)
    let error = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.identities(text.span) }
    #expect(error?.kind == .key && error?.reason.hasPrefix("line 3: its checksum") == true)
    #expect(error?.description.contains(secret.suffix(20)) == false)
    let list = Array("\(AgeFixture.recipient)\nssh-rsa AAAA\n".utf8)
    let other = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.recipients(list.span) }
    #expect(other?.kind == .unsupported && other?.reason.hasPrefix("line 2: SSH") == true)
    for empty in ["", "\n\n", "# only\n"] {
      let bytes = Array(empty.utf8)
      let none = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.recipients(bytes.span) }
      #expect(none?.reason == "the list has no recipient")
      let no = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.identities(bytes.span) }
      #expect(no?.reason == "the list has no identity")
    }
    let large = [UInt8](repeating: 10, count: AgeKeyList.maximumCount + 1)
    let limit = AgeFixture.refusal { () throws(AgeError) in try AgeKeyList.recipients(large.span) }
    #expect(limit?.kind == .limit)
  }

  @Test func anEmptyPassphraseIsRefused() {
    let error = AgeFixture.refusal { () throws(AgeError) in try AgeFixture.passphrase("") }
    #expect(error?.reason == "the passphrase is empty")
  }
}

extension Array {
  /// Returns a copy in which one element is replaced with others.
  fileprivate func replacing(_ index: Int, with others: [Element]) -> [Element] {
    Array(self[..<index]) + others + Array(self[(index + 1)...])
  }
}
