import Testing

@testable import Codecs

/// Files by another program, and Base64 as in their headers.
@Suite struct AgeForeignFileTests {
  @Test func filesOfAnotherProgramOpen() throws {
    let file = try AgeFixture.file(AgeFixture.forBoth)
    for text in [AgeFixture.first, AgeFixture.second] {
      let plain = try AgeFixture.decrypt(file, with: [AgeFixture.key(text)])
      #expect(plain == Array(AgeFixture.plain.utf8))
    }
    let passphrase = try AgeFixture.passphrase(AgeFixture.passphrase)
    let secret = try AgeFixture.file(AgeFixture.forPassphrase)
    #expect(
      try AgeFixture.decrypt(secret, with: passphrase) == Array(AgeFixture.plain.utf8))
  }

  /// Base64 without padding, as in headers.
  @Test func base64WithoutPaddingIsCanonical() {
    let pairs: [([UInt8], String)] = [
      ([], ""), ([0xFB], "+w"), ([0xFB, 0xFF], "+/8"), ([1, 2, 3], "AQID"),
    ]
    for (bytes, text) in pairs {
      #expect(Base64.encode(bytes, padded: false) == text)
      #expect(Base64.decode(text.utf8, padded: false) == bytes)
    }
    for text in ["+", "+w==", "+x", "+/9", "AQIDA", "AQID=", "A QI", "=", "AQ\n"] {
      #expect(Base64.decode(text.utf8, padded: false) == nil, "\(text)")
    }
  }
}
