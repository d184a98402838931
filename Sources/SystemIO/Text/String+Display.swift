extension String {
  /// The text as one line for display, with control characters and bidirectional marks escaped as
  /// in `ByteString.description`: for text of others that is no name. Backslashes stay, since they
  /// may begin escapes.
  public var shownOnOneLine: String {
    unicodeScalars.map { scalar in
      scalar == "\\" ? "\\" : ByteString(String(scalar)).description
    }.joined()
  }
}
