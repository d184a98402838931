import Testing

@testable import Codecs

/// Ed25519 signatures, and the text form of their keys.
struct SigningTests {
  private static func bytes(hex: String) -> [UInt8] {
    let digits = Array(hex.utf8)
    return stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
    }
  }

  private static func text(_ key: SigningKey) -> [UInt8] {
    key.text().withBytes { text in text.indices.map { text[$0] } }
  }

  private static func signingError(_ body: () throws(SigningError) -> Void) -> SigningError? {
    do {
      try body()
      return nil
    } catch { return error }
  }

  /// RFC 8032, section 7.1: test 2.
  @Test func publishedVectorIsReproduced() throws {
    let seed = Self.bytes(hex: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    let text = Bech32.encode(seed.span, prefix: SigningKey.prefix)
    let key = try text.withBytes { text throws(SigningError) in try SigningKey(text) }
    #expect(
      key.signer.point
        == Self.bytes(hex: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"))
    let signature = key.sign([0x72])
    #expect(
      signature.bytes
        == Self.bytes(
          hex: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"))
    #expect(key.signer.verifies(signature, of: [0x72]))
  }

  @Test func textsAreReadBack() throws {
    let key = SigningKey()
    let text = Self.text(key)
    #expect(String(decoding: text, as: UTF8.self).hasPrefix("SBX-SIGNING-KEY-1"))
    let again = try SigningKey((text + Array("\n".utf8)).span)
    #expect(again.signer == key.signer && Self.text(again) == text)
    let signer = key.signer.description
    #expect(signer.hasPrefix("sbxsig1") && signer.utf8.count == 65)
    #expect(try Signer(signer) == key.signer)
    #expect(key.sign([1, 2, 3]) == again.sign([1, 2, 3]))
    #expect(SigningKey().signer != key.signer)
  }

  @Test func otherTextsAreRefused() {
    let key = SigningKey()
    let secret = String(decoding: Self.text(key), as: UTF8.self)
    let signer = key.signer.description
    let low = [1] + [UInt8](repeating: 0, count: 31)
    let neutral = Signer(point: low).description
    for text in [
      "", "sbxsig1", secret, secret.lowercased(), signer.uppercased(), String(signer.dropLast()),
      signer + "q", AgeIdentity().recipient.description, neutral,
    ] {
      let error = Self.signingError { () throws(SigningError) in _ = try Signer(text) }
      #expect(error != nil, "\(text)")
      #expect(error?.description.contains(secret) != true)
    }
    for text in ["", "SBX-SIGNING-KEY-1", signer, secret.lowercased(), secret + "Q"] {
      #expect(
        Self.signingError { () throws(SigningError) in
          _ = try SigningKey(Array(text.utf8).span)
        } != nil, "\(text)")
    }
  }

  @Test func eachChangedBitIsFound() throws {
    let key = SigningKey()
    let message = Array("a message".utf8)
    let signature = key.sign(message)
    #expect(key.signer.verifies(signature, of: message))
    for bit in 0..<(64 * 8) {
      var bytes = signature.bytes
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!key.signer.verifies(Signature(bytes: bytes), of: message))
    }
    for bit in 0..<(message.count * 8) {
      var other = message
      other[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!key.signer.verifies(signature, of: other))
    }
    #expect(!key.signer.verifies(signature, of: message + [0]))
    #expect(!SigningKey().signer.verifies(signature, of: message))
  }

  @Test func signatureIsCanonicalBase64() throws {
    let signature = SigningKey().sign([])
    #expect(Signature(base64: signature.base64) == signature)
    #expect(Signature(base64: String(signature.base64.dropLast())) == nil)
    #expect(Signature(base64: signature.base64 + "A") == nil)
    #expect(Signature(base64: "") == nil)
  }
}
