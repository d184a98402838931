import SystemIO
import TestSupport
import Testing

@testable import SandboxCommands

/// Arguments of any bytes are converted to text for the parser, and back.
struct ArgumentTests {
  @Test func everyByteIsDecoded() {
    for byte in UInt8.min...UInt8.max {
      for bytes in [
        [byte], [0x61, byte], [byte, 0x61], [byte, byte], [0xc3, byte], [byte, 0xa9],
      ] {
        #expect(ByteString(argument: ByteString(bytes).argument) == ByteString(bytes))
      }
    }
  }

  private static let bytes: [UInt8] = [0x61, 0x80, 0x8f, 0xbc, 0xbf, 0xf4]

  @Test func escapingIsReversibleAndUnique() {
    var random = Seeded.fresh()
    var words: [String: ByteString] = [:]
    for _ in 0..<4000 {
      // Few distinct bytes, including all those of U+10FFFF and U+10FF00, so that these occur.
      let word = ByteString((0..<6).compactMap { _ in Self.bytes.randomElement(using: &random) })
      #expect(ByteString(argument: word.argument) == word)
      #expect(words[word.argument] ?? word == word)
      words[word.argument] = word
    }
  }

  @Test(arguments: ["", "plain", "--root=caf\u{e9}", "cafe\u{301}", "\u{10feff}", "\u{0}\u{fffd}"])
  func plainTextIsNotEscaped(_ text: String) {
    #expect(Array(ByteString(text).argument.utf8) == Array(text.utf8))
    #expect(!text.hasEscapedBytes)
    #expect(text.showingBytes == text)
  }

  @Test(arguments: ["\u{10ff00}", "\u{10fffd}", "x\u{10ffff}y"])
  func escapeScalarsAreEscaped(_ text: String) {
    let argument = ByteString(text).argument
    #expect(argument != text)
    #expect(argument.hasEscapedBytes)
    #expect(ByteString(argument: argument) == ByteString(text))
    #expect(argument.showingBytes == ByteString(text).description)
  }

  @Test func messageShowsTheBytes() {
    let word = ByteString([0x61, 0xff, 0xfe, 0x62, 0xc3])
    #expect(
      "Unexpected 'a b' '\(word.argument)'.\n".showingBytes
        == "Unexpected 'a b' 'a\\xff\\xfeb\\xc3'.\n")
  }

  @Test func shellReadsTheQuotedWord() throws {
    let words = [
      ByteString([0x62, 0xff]), ByteString([0xff, 0x27, 0x5c, 0x0a, 0x31]), "it's", "new\nline",
      "back\\slash", "caf\u{e9}", "",
    ]
    for word in words {
      let outcome = try Program.run("bash", ["-c", "printf %s \(ShellWord.text(word))"])
      #expect(ByteString(outcome.standardOutput) == word)
    }
    #expect(ShellWord.text(ByteString("repo")) == "repo")
  }
}
