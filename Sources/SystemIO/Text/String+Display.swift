extension String {
  /// The text as one line for display, with control characters and characters without a glyph
  /// escaped as in `ByteString.description`: for foreign text that is not a name. Backslashes stay,
  /// because they may begin escapes.
  public var shownOnOneLine: String {
    unicodeScalars.split(separator: "\\", omittingEmptySubsequences: false)
      .map { ByteString(String($0)).description }
      .joined(separator: "\\")
  }
}
