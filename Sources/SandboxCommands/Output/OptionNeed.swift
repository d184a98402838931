internal import ArgumentParser
internal import SystemIO

/// An option that has an effect only together with another one. A command line with only this
/// option is refused. A configuration file may set it alone, for the runs that have the other one.
struct OptionNeed: Sendable {
  /// The long name of the option.
  let option: String
  /// The long name of the other option.
  let other: String
  /// The long name of an option that creates the need; nil for a need in all runs.
  var beside: String?
  /// A value of the other option to suggest; nil for a flag or a value that only the user knows.
  var example: String?

  /// Creates the needs of several options.
  static func of(_ options: String..., other: String) -> [OptionNeed] {
    options.map { OptionNeed(option: $0, other: other) }
  }

  /// Returns the long names of the options in the words of a command line.
  static func names(in words: [String]) -> Set<String> {
    Set(
      words.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
        .map { String($0.dropFirst(2).prefix { $0 != "=" }) })
  }
}

extension SandboxCommand {
  /// Refuses an option that has no effect because another one is missing.
  ///
  /// - Parameters:
  ///   - given: the words of the command line.
  ///   - words: these words and those that the configuration adds.
  func requireEffect(of given: [String], in words: [String]) throws(UsageError) {
    if Self.needs.isEmpty { return }
    let (named, all) = (OptionNeed.names(in: given), OptionNeed.names(in: words))
    for need in Self.needs where named.contains(need.option) && !all.contains(need.other) {
      if let beside = need.beside, !all.contains(beside) { continue }
      let example = need.example.map { " \($0)" } ?? ""
      throw UsageError(
        .optionRequired, "'--\(need.option)' requires '--\(need.other)'",
        hint: "add '--\(need.other)\(example)', or omit '--\(need.option)'")
    }
  }
}

extension ValidationError {
  /// Refuses more than one of several options, given by their names.
  static func requireAtMostOne(of given: [String]) throws(ValidationError) {
    guard given.count > 1 else { return }
    throw ValidationError("'\(given[0])' and '\(given[1])' cannot be used together.")
  }
}
