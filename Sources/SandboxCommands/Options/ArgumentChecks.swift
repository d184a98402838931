internal import ArgumentParser
internal import SystemIO

/// Checks of the arguments that the parser does not make.
enum ArgumentChecks {
  /// Refuses bytes that are not UTF-8 in a text argument, such as a tag. Arguments that may contain
  /// other bytes are of type `ByteString`; each `String` is text.
  static func requireText(_ command: any ParsableCommand, _ words: [String]) throws {
    guard words.contains(where: \.hasEscapedBytes),
      let text = texts(in: command).first(where: \.hasEscapedBytes)
    else { return }
    throw UsageError(
      "'\(ByteString(argument: text))' is not valid text",
      hint:
        "only paths, patterns and names may contain bytes that are not UTF-8, or U+10FF00 and above"
    )
  }

  /// Returns all text arguments of a command, including those in its option groups.
  private static func texts(in value: Any) -> [String] {
    if let text = value as? String { return [text] }
    return Mirror(reflecting: value).children.flatMap { texts(in: $0.value) }
  }

  /// Refuses an option with one value that is given several times. The parser would use the last.
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
