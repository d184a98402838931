import SystemIO
import TestSupport
import Testing

struct ByteStringDisplayTests {
  @Test(arguments: [
    ("plain name.txt", "plain name.txt"),
    ("caf\u{e9} \u{1f600} \u{65e5}", "caf\u{e9} \u{1f600} \u{65e5}"),
    ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
    ("back\\slash", "back\\\\slash"),
    ("\u{1b}[31mred", "\\x1b[31mred"),
    ("\u{7f}\u{0}", "\\x7f\\x00"),
    ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
    ("zero\u{200b}width", "zero\\u{200b}width"),
    ("next\u{85}line", "next\\u{85}line"),
    ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
    ("\u{feff}bom", "\\u{feff}bom"),
    ("\u{115f}\u{1160}\u{3164}\u{ffa0}", "\\u{115f}\\u{1160}\\u{3164}\\u{ffa0}"),
    ("a\u{34f}b\u{17b4}c\u{180b}", "a\\u{34f}b\\u{17b4}c\\u{180b}"),
    ("letter\u{fe0f} \u{845b}\u{e0100}", "letter\\u{fe0f} \u{845b}\\u{e0100}"),
    ("\u{2764}\u{fe0f} \u{2764}\u{fe0f}\u{fe0f}", "\u{2764}\u{fe0f} \u{2764}\u{fe0f}\\u{fe0f}"),
    ("1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}", "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}"),
    ("1\u{fe0f} x\u{fe0f}\u{20e3}", "1\\u{fe0f} x\\u{fe0f}\u{20e3}"),
    ("join\u{200d}er", "join\\u{200d}er"),
    ("\u{d55c}\u{ae00} e\u{301}", "\u{d55c}\u{ae00} e\u{301}"),
    ("", ""),
  ])
  func unprintableCharactersAreEscaped(name: String, shown: String) {
    #expect(ByteString(name).description == shown)
  }

  @Test(
    arguments: [
      ([0xff, 0x61], "\\xffa"), ([0xc3], "\\xc3"), ([0xc3, 0x28], "\\xc3("),
      ([0xe2, 0x82], "\\xe2\\x82"), ([0xed, 0xa0, 0x80], "\\xed\\xa0\\x80"),
      ([0xc0, 0xaf], "\\xc0\\xaf"), ([0xf4, 0x90, 0x80, 0x80], "\\xf4\\x90\\x80\\x80"),
      ([0xf0, 0x9f, 0x98, 0x80], "\u{1f600}"), ([0xc3, 0xa9, 0xff], "\u{e9}\\xff"),
    ] as [([UInt8], String)])
  func bytesThatAreNotUTF8AreEscaped(bytes: [UInt8], shown: String) {
    #expect(ByteString(bytes).description == shown)
  }

  @Test func displayedNamesHaveNoLineBreaksAndAreUnique() {
    var random = Seeded.fresh()
    var shown: [String: [UInt8]] = [:]
    for _ in 0..<2000 {
      let bytes = random.fileName(longest: 4)
      let text = ByteString(bytes).description
      #expect(
        text.unicodeScalars.allSatisfy { !($0.value < 0x20 || $0.value == 0x7f) },
        "seed \(random.seed)")
      // Scalars are compared: two different names are never displayed by the same ones.
      let key = text.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
      #expect(shown[key] == nil || shown[key] == bytes, "seed \(random.seed)")
      shown[key] = bytes
    }
  }

  /// Escapes that are part of a text are not escaped again.
  @Test func textsAreShownOnOneLine() {
    #expect(
      "a\\x1b \u{1b}[0m\n\u{202e}e\u{301}".shownOnOneLine == "a\\x1b \\x1b[0m\\n\\u{202e}e\u{301}")
    #expect("\\\u{2764}\u{fe0f}\u{3164}\\".shownOnOneLine == "\\\u{2764}\u{fe0f}\\u{3164}\\")
  }
}
