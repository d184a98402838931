/// The options with which commands that a message suggests use the repository that this command has
/// opened.
///
/// Messages name commands in quotes: `'sandboxctl repair index'`. Most are written where neither
/// the location as given by the user nor its options are known, so the options are added when a
/// message is printed.
struct SuggestedCommands {
  /// The location, the options needed to reach it, and the key, as text to paste after a command;
  /// empty if the command finds the repository by itself.
  var suffix = ""
  /// The same without the key, for commands about keys, which may need a different one.
  var suffixWithoutKey = ""

  /// The commands about the open repository. Others are suggested for another one, such as `copy`,
  /// `init` and `mirror`, or for a device.
  private static let commands: Set<Substring> = [
    "backup", "cache", "check", "diff", "dump", "find", "forget", "key", "leases", "ls", "prune",
    "repair", "restore", "snapshots", "stats", "versions",
  ]

  private static let beginning = "'sandboxctl "

  /// Returns a message whose commands use the repository. A command that names one, that is not
  /// complete, or that has a word in quotes stays.
  func complete(_ message: String) -> String {
    guard !suffix.isEmpty, message.contains(Self.beginning) else { return message }
    var parts = message.split(separator: Self.beginning, omittingEmptySubsequences: false)
    for index in parts.indices.dropFirst() {
      guard let end = parts[index].firstIndex(of: "'") else { continue }
      let command = parts[index][..<end]
      // The quote of a word in it, as of a path with a space.
      let next = parts[index][end...].dropFirst().first
      if command.last == " " || next?.isLetter == true || next?.isNumber == true { continue }
      guard let options = options(for: command) else { continue }
      parts[index] = command + options + parts[index][end...]
    }
    return parts.joined(separator: Self.beginning)
  }

  /// Returns the options to add to a command; nil if it needs none.
  private func options(for command: Substring) -> String? {
    let words = command.split(separator: " ")
    guard let name = words.first, Self.commands.contains(name),
      !words.contains(where: { $0 == "--repo" || $0 == "--help" || $0 == "…" })
    else { return nil }
    return name == "key" ? suffixWithoutKey : suffix
  }
}
