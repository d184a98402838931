/// The width of texts on a terminal.
enum TextWidth {
  /// Returns the number of columns of a text: two for a wide character of East Asian scripts and
  /// for an emoji, one for any other. It does not depend on the locale, which cron does not set.
  static func columns(of text: String) -> Int {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
    return text.reduce(0) { $0 + (isWide($1) ? 2 : 1) }
  }

  private static func isWide(_ character: Character) -> Bool {
    let scalars = character.unicodeScalars
    guard let first = scalars.first, first.value >= 0x1100 else { return false }
    return first.properties.isEmojiPresentation || scalars.contains("\u{fe0f}")
      || wide.contains { $0.contains(first.value) }
  }

  /// The blocks of wide characters (Unicode Standard Annex #11).
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xa960...0xa97f, 0xac00...0xd7a3,
    0xf900...0xfaff, 0xfe30...0xfe6f, 0xff00...0xff60, 0xffe0...0xffe6, 0x20000...0x3fffd,
  ]
}
