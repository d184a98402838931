internal import ArgumentParser
internal import PolicyEngine
internal import SystemIO

extension UsageError {
  /// Creates an error from a message of the argument parser: in lower case, without a full stop,
  /// and with the parser's advice and the command's help as the hint.
  init(parser message: String, _ fullMessage: String) {
    let parts = message.showingBytes.split(separator: ". ", maxSplits: 1).map {
      Self.begunSmall($0)
    }
    let command = fullMessage.firstMatch(of: /'(sandboxctl[^']*--help)'/)?.output.1
    let help = "'\(command ?? "sandboxctl --help")' shows how it is used"
    let advice = parts.count > 1 ? parts[1] + (parts[1].hasSuffix("?") ? " " : "; ") : ""
    self.init(parts.first ?? message.showingBytes, hint: advice + help)
  }

  private static func begunSmall(_ sentence: Substring) -> String {
    let text = sentence.last == "." ? sentence.dropLast() : sentence
    // A word in capitals is a name, for example PATH.
    guard let first = text.first, text.dropFirst().first?.isLowercase == true else {
      return String(text)
    }
    return first.lowercased() + text.dropFirst()
  }
}
