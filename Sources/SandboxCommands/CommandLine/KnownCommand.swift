internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// A command as its argument parser describes it, with its options and subcommands.
///
/// The parser needs a millisecond or more to describe one command, a third of a short run, so
/// options are read on demand: most runs with a configuration need those of one command.
final class KnownCommand {
  let name: String
  private let type: any ParsableCommand.Type

  /// Its subcommands.
  private(set) lazy var commands = type.configuration.subcommands.map { KnownCommand($0) }

  /// Its options; empty for a command that only groups subcommands.
  private(set) lazy var options: [Option] = commands.isEmpty ? Self.options(of: type) : []

  init(_ type: any ParsableCommand.Type) {
    self.type = type
    name = type._commandName
  }

  private static func options(of type: any ParsableCommand.Type) -> [Option] {
    // The parser's dump is always JSON.
    let dump = try? JSON(parsing: type._dumpHelp())
    return (dump?["command"]?["arguments"]?.array ?? []).compactMap { Option($0) }
  }

  /// The subcommand with a name.
  subscript(_ name: String) -> KnownCommand? { commands.first { $0.name == name } }

  /// Returns the option with a long name.
  func option(_ name: String) -> Option? { options.first { $0.name == name } }

  /// Whether a setting for all commands applies to an option of this one.
  func sharesOption(_ name: String) -> Bool {
    guard let command = type as? any SandboxCommand.Type else { return true }
    return !command.ownOptions.contains(name)
  }

  /// The options that replace settings for others.
  var precedence: [OptionPrecedence] {
    OptionPrecedence.ofGroups + ((type as? any SandboxCommand.Type)?.precedence ?? [])
  }

  /// Returns the names, in `precedence`, of the choices that arguments make.
  func choices(of arguments: [String]) -> Set<String> {
    (type as? any SandboxCommand.Type)?.choices(of: arguments) ?? []
  }

  /// This command and all its subcommands.
  var all: [KnownCommand] { [self] + commands.flatMap(\.all) }

  /// Returns the subcommands that the first words of a command line name.
  func named(by words: some Collection<String>) -> [KnownCommand] {
    guard let first = words.first, let next = self[first] else { return [] }
    return [next] + next.named(by: words.dropFirst())
  }

  /// Returns the subcommands that run for a command line, from the outermost: those that its words
  /// name, and the default ones.
  func commands(of words: [String]) -> [KnownCommand] {
    let named = named(by: words)
    return named + (named.last?.defaults ?? [])
  }

  /// The default subcommands from this command down; empty if there is none.
  private var defaults: [KnownCommand] {
    let standard = type.configuration.defaultSubcommand?._commandName
    return standard.flatMap { self[$0] }.map { [$0] + $0.defaults } ?? []
  }
}

extension KnownCommand {
  /// An option of a command.
  struct Option {
    /// The long name, without dashes.
    let name: String
    /// All long names, which include those of an inversion.
    let longNames: [String]
    let letters: [Character]
    let isFlag: Bool
    let isRepeating: Bool
    /// The name of its value in the help.
    let valueName: String
    /// Whether the help shows it.
    let isShown: Bool

    /// Nil if the argument is not an option with a long name.
    fileprivate init?(_ json: JSON) {
      let kind = json["kind"]?.string
      let names = json["names"]?.array ?? []
      longNames = names.compactMap { $0["kind"]?.string == "long" ? $0["name"]?.string : nil }
      guard kind == "flag" || kind == "option", let long = longNames.first else { return nil }
      name = long
      letters = names.filter { $0["kind"]?.string == "short" }
        .compactMap { $0["name"]?.string?.first }
      isFlag = kind == "flag"
      isRepeating = json["isRepeating"]?.bool ?? false
      valueName = json["valueName"]?.string ?? ""
      isShown = json["shouldDisplay"]?.bool ?? true
    }

    /// Whether a configuration file may set it. It cannot set `--help` and `--version`, nor choose
    /// a profile.
    var isSetting: Bool { isShown && !["help", "version", "profile"].contains(name) }

    /// Whether its value is a path, which must not depend on the working directory.
    var isPath: Bool { isRepository || valueName == "dir" }

    /// Whether its value names a repository, which may be on another host.
    var isRepository: Bool { valueName == "repo" }
  }
}

extension KnownCommand {
  /// Parses a command line of this root command.
  ///
  /// - Throws: `UsageError` with the parser's message.
  func parse(_ words: [String]) throws(UsageError) -> any ParsableCommand {
    do {
      return try type.parseAsRoot(words)
    } catch {
      throw mistake(error, in: words)
    }
  }

  /// Returns the error for a mistake that the parser found in a command line.
  func mistake(_ error: any Error, in words: [String]) -> UsageError {
    let (message, path) = (type.message(for: error), commands(of: words))
    if let negative = negativeValue(message, in: words) { return negative }
    // The parser checks arguments first, and takes the value of an unknown option for one.
    let unknown = path.last?.unknownOption(in: words).map { "Unknown option '\($0)'" }
    let shown = message.hasPrefix("Unknown option '") ? message : unknown ?? message
    return UsageError(
      parser: shown, type.fullMessage(for: error),
      advice: WordAdvice.forMessage(shown, of: path, in: self))
  }

  /// Returns the first option in a command line that this command does not have; nil if there is
  /// none.
  private func unknownOption(in words: [String]) -> String? {
    guard commands.isEmpty else { return nil }
    let known = Set(options.flatMap(\.longNames)).union(["help", "version"])
    let given = words.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
    return given.lazy.map { String($0.prefix { $0 != "=" }) }
      .first { !known.contains(String($0.dropFirst(2))) }
  }

  /// Returns the error for a negative number after an option, which the parser mistakes for another
  /// option, so that it reports a missing value; nil if there is none.
  private func negativeValue(_ message: String, in words: [String]) -> UsageError? {
    guard message.hasPrefix("Missing value for '"),
      let option = message.firstMatch(of: /'(--[^ ']+)/).map({ String($0.output.1) }),
      let index = words.indices.dropLast().first(where: { index in
        words[index] == option && words[index + 1].prefixMatch(of: /-[0-9.]/) != nil
      })
    else { return nil }
    let joined = "\(option)=\(words[index + 1])"
    let others = words[..<index] + [joined] + words[(index + 2)...]
    do {
      _ = try type.parseAsRoot(Array(others))
      return UsageError(
        .invalidValue,
        "'\(words[index + 1])' is read as an option, not as the value of '\(option)'",
        hint: "if it is the value, write '\(joined)'")
    } catch { return mistake(error, in: Array(others)) }
  }

  /// Returns the error for an unknown word in place of a command; nil if the words name a command,
  /// or if an option comes first.
  func unknownCommand(in arguments: [String]) -> UsageError? {
    var commands = commands
    var words: [String] = []
    for word in arguments.drop(while: { $0 == "help" }) {
      if commands.isEmpty || word.hasPrefix("-") { return nil }
      words.append(word)
      guard let command = commands.first(where: { $0.name == word }) else {
        return Self.unknown(words, among: commands.map(\.name))
      }
      commands = command.commands
    }
    return nil
  }

  private static func unknown(_ words: [String], among known: [String]) -> UsageError {
    let advice = WordAdvice.forCommand(words, among: known)
    let above = (["sandboxctl"] + words.dropLast()).joined(separator: " ")
    return UsageError(
      .unknownCommand,
      "there is no command '\(ByteString(argument: words.joined(separator: " ")))'",
      hint: (advice.map { $0 + " " } ?? "") + "'\(ByteString(above)) --help' lists the commands")
  }

  /// Refuses an option with one value that is given several times. The parser would use the last.
  func requireOnce(_ words: [String]) throws(UsageError) {
    var seen: Set<String> = []
    let repeated = words.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
      .map { String($0.dropFirst(2).prefix { $0 != "=" }) }
      .filter { !seen.insert($0).inserted }
    if repeated.isEmpty { return }
    guard let command = commands(of: words).last else { return }
    for option in repeated.compactMap(command.option) where !option.isFlag && !option.isRepeating {
      throw UsageError(
        .optionRepeated, "'--\(option.name)' is given more than once",
        hint: "it takes one value: give it once")
    }
  }
}
