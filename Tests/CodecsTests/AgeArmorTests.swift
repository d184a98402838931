import TestSupport
import Testing

@testable import Codecs

/// The armor of files, and files made by another program.
struct AgeArmorTests {
  @Test func armoredFilesOfAnotherProgramOpen() throws {
    let file = try AgeArmor.decode(Array(AgeFixture.forBoth.utf8))
    for text in [AgeFixture.first, AgeFixture.second] {
      let plain = try AgeFixture.decrypt(file, with: [AgeFixture.key(text)])
      #expect(plain == Array(AgeFixture.plain.utf8))
    }
    #expect(AgeArmor.encode(file) == Array("\(AgeFixture.forBoth)\n".utf8))
    let passphrase = try AgeFixture.passphrase(AgeFixture.passphrase)
    let secret = try AgeArmor.decode(Array(AgeFixture.forPassphrase.utf8))
    #expect(
      try AgeFixture.decrypt(secret, with: passphrase) == Array(AgeFixture.plain.utf8))
  }

  @Test func anySizeSurvives() throws {
    var random = TestSupport.Seeded.fresh()
    for size in Array(1...200) + [5000] {
      let bytes = random.bytes(size)
      let text = AgeArmor.encode(bytes)
      #expect(AgeArmor.isArmored(text.span) == true)
      #expect(try AgeArmor.decode(text) == bytes)
      #expect(try AgeArmor.decode(Array(" \t\r\n".utf8) + text + Array("\n\n ".utf8)) == bytes)
    }
    for other in ["age-encryption.org/v1\n", "", " "].map({ Array($0.utf8) }) {
      #expect(AgeArmor.isArmored(other.span) == false)
    }
  }

  @Test func mixedLineEndingsAreRefused() throws {
    let text = String(decoding: AgeArmor.encode([UInt8](repeating: 1, count: 100)), as: UTF8.self)
    let returns = text.replacing("\n", with: "\r\n")
    #expect(try AgeArmor.decode(Array(returns.utf8)) == [UInt8](repeating: 1, count: 100))
    let lines = text.split(separator: "\n").map(String.init)
    for ending in 0..<(lines.count - 1) {
      let mixed = lines.enumerated().map { $1 + ($0 == ending ? "\r\n" : "\n") }.joined()
      let error = AgeFixture.refusal { () throws(AgeError) in
        try AgeArmor.decode(Array(mixed.utf8))
      }
      #expect(error?.kind == .armor, "line \(ending + 1)")
    }
  }

  /// An armored file has a single form: any change other than white space at its ends changes the
  /// file or is refused.
  @Test func everyChangeOfAnArmoredFileIsRefused() throws {
    let identity = try AgeFixture.key(AgeFixture.first)
    let text = Array(AgeFixture.forBoth.utf8)
    for index in text.indices {
      for other in [text[index] ^ 1, text[index] ^ 0x20, 0x0A, 0x20, 0x3D]
      where other != text[index] {
        var changed = text
        changed[index] = other
        #expect(throws: AgeError.self, "byte \(index) is \(other)") {
          try AgeFixture.decrypt(AgeArmor.decode(changed), with: [identity])
        }
      }
      #expect(throws: AgeError.self, "the first \(index) bytes") {
        try AgeArmor.decode(Array(text[..<index]))
      }
    }
  }

  /// Base64 without padding, as used in headers.
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
