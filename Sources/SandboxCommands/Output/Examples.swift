/// The examples at the end of each help text.
enum Examples {
  private static let title = "EXAMPLES:"

  /// Returns the part of a discussion that shows examples. Lines have fewer than 76 columns, so
  /// that the parser does not wrap them.
  static func text(_ commands: [String]) -> String {
    "\(title)\n" + commands.map { "  $ " + $0 }.joined(separator: "\n")
  }

  /// Returns a help text with the examples moved to the end, where they are visible after printing.
  /// The parser puts the discussion before the options.
  static func atEnd(of help: String) -> String {
    var lines = help.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard let start = lines.firstIndex(of: title) else { return help }
    let end = lines[start...].firstIndex(of: "") ?? lines.endIndex
    let examples = lines[start..<end]
    lines.removeSubrange(start..<min(end + 1, lines.endIndex))
    while lines.last?.isEmpty == true { lines.removeLast() }
    return (lines + [""] + examples).joined(separator: "\n")
  }
}
