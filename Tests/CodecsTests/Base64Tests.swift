import Codecs
import Foundation
import Testing

struct Base64Tests {
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
    ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
  ])
  func agreesWithTheStandard(plain: String, encoded: String) {
    #expect(Base64.encode(plain.utf8) == encoded)
    #expect(Base64.decode(encoded.utf8) == Array(plain.utf8))
  }

  @Test func agreesWithFoundation() {
    var random = Seeded(11)
    for count in 0...300 {
      let bytes = random.bytes(count)
      #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
      #expect(Base64.decode(Base64.encode(bytes).utf8) == bytes)
    }
  }

  @Test(arguments: ["Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Zm9v=", "Zm 9v", "Zm9-", "====", "="])
  func invalidTextIsRefused(text: String) {
    #expect(Base64.decode(text.utf8) == nil)
    if text != "Zh==" { #expect(Base64.decode(text.utf8, strayBits: true) == nil) }
  }

  @Test func unusedBitsAreIgnoredOnRequest() {
    #expect(Base64.decode("Zh==".utf8, strayBits: true) == Array("f".utf8))
    #expect(Base64.decode("Zm9=".utf8, strayBits: true) == Array("fo".utf8))
  }
}
