internal import ArgumentParser
internal import SystemIO

/// Mistakes in the words of a command line that the parser lets pass.
enum WordChecks {
  /// Refuses bytes that are not UTF-8 where a text is meant, as in a tag: what a command has as a
  /// `ByteString` is of bytes, and every `String` of it is a text.
  static func requireText(_ command: any ParsableCommand, _ words: [String]) throws {
    guard words.contains(where: \.hasEscapedBytes),
      let text = texts(in: command).first(where: \.hasEscapedBytes)
    else { return }
    throw UsageError(
      "'\(ByteString(argument: text))' is no text that can be taken",
      hint: "only paths, patterns and names may hold what is not UTF-8, or U+10FF00 and above")
  }

  /// All texts that a command was given, wherever its groups of options hold them.
  private static func texts(in value: Any) -> [String] {
    if let text = value as? String { return [text] }
    return Mirror(reflecting: value).children.flatMap { texts(in: $0.value) }
  }

  /// Refuses an option that takes one value and is given several times: the parser takes the last.
  static func requireOnce(_ words: [String]) throws {
    var seen: Set<String> = []
    let repeated = words.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
      .map { String($0.dropFirst(2).prefix { $0 != "=" }) }
      .filter { !seen.insert($0).inserted }
    if repeated.isEmpty { return }
    let named = KnownCommand.program().named(by: words)
    guard let command = (named + (named.last?.meant ?? [])).last else { return }
    for option in repeated.compactMap(command.option) where !option.isFlag && !option.isRepeating {
      throw UsageError(
        "'--\(option.name)' is given more than once", hint: "it takes one value: give it once")
    }
  }
}
