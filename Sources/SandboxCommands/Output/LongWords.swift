extension String {
  /// The text with the middle left out of words that are longer than anybody reads, as paths may be
  /// (PATH_MAX: 4,096 bytes): what remains fits some lines, and tells where it begins and ends.
  var abbreviated: String {
    guard utf8.count > Self.longestWord else { return self }
    return split(separator: " ", omittingEmptySubsequences: false).map { word in
      guard word.count > Self.longestWord else { return String(word) }
      return word.prefix(Self.longestWord / 2) + "…" + word.suffix(Self.longestWord / 2)
    }.joined(separator: " ")
  }

  /// Characters of a word that is shown whole.
  private static let longestWord = 400
}
