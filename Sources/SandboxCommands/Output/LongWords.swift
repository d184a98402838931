extension String {
  /// The text without the middle of very long words, such as paths near PATH_MAX (4,096 bytes). The
  /// rest fits on a few lines and shows both ends.
  var abbreviated: String {
    guard utf8.count > Self.longestWord else { return self }
    return split(separator: " ", omittingEmptySubsequences: false).map { word in
      guard word.count > Self.longestWord else { return String(word) }
      return word.prefix(Self.longestWord / 2) + "…" + word.suffix(Self.longestWord / 2)
    }.joined(separator: " ")
  }

  /// The number of characters up to which a word is shown completely.
  private static let longestWord = 400
}
