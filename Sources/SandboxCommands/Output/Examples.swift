/// The commands that end each help text.
enum Examples {
  private static let title = "EXAMPLES:"

  /// The part of a command's discussion that shows how it is used. Lines are kept under 76 columns,
  /// so that they are not wrapped.
  static func text(_ commands: [String]) -> String {
    "\(title)\n" + commands.map { "  $ " + $0 }.joined(separator: "\n")
  }

  /// A help text with the examples at its end, where the eye is when it has been printed, and not
  /// before the options, where the parser puts the discussion.
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
