internal import ArgumentParser
internal import Codecs

/// A command as its argument parser describes it, with its options and subcommands.
///
/// The parser needs a third of a millisecond to describe one command, so options are read on
/// demand: most runs with a configuration need those of two commands.
final class KnownCommand {
  let name: String
  let commands: [KnownCommand]
  private let type: any ParsableCommand.Type

  /// Its options; empty for a command that only groups subcommands.
  private(set) lazy var options: [KnownOption] = commands.isEmpty ? Self.options(of: type) : []

  /// Returns the root command.
  static func program() -> KnownCommand { KnownCommand(SandboxctlCommand.self) }

  private init(_ type: any ParsableCommand.Type) {
    self.type = type
    name = type._commandName
    commands = type.configuration.subcommands.map { KnownCommand($0) }
  }

  private static func options(of type: any ParsableCommand.Type) -> [KnownOption] {
    // The parser's dump is always JSON.
    let dump = try? JSON(parsing: type._dumpHelp())
    return (dump?["command"]?["arguments"]?.array ?? []).compactMap { KnownOption($0) }
  }

  /// The subcommand with a name.
  subscript(_ name: String) -> KnownCommand? { commands.first { $0.name == name } }

  /// Returns the option with a long name.
  func option(_ name: String) -> KnownOption? { options.first { $0.name == name } }

  /// This command and all its subcommands.
  var all: [KnownCommand] { [self] + commands.flatMap(\.all) }

  /// Returns the subcommands that the first words of a command line name.
  func named(by words: some Collection<String>) -> [KnownCommand] {
    guard let first = words.first, let next = self[first] else { return [] }
    return [next] + next.named(by: words.dropFirst())
  }

  /// The default subcommands from this command down; empty if there is none.
  var meant: [KnownCommand] {
    let standard = type.configuration.defaultSubcommand?._commandName
    return standard.flatMap { self[$0] }.map { [$0] + $0.meant } ?? []
  }
}

/// An option of a command.
struct KnownOption {
  /// The long name, without dashes.
  let name: String
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
    let long = names.first { $0["kind"]?.string == "long" }?["name"]?.string
    guard kind == "flag" || kind == "option", let long else { return nil }
    name = long
    letters = names.filter { $0["kind"]?.string == "short" }
      .compactMap { $0["name"]?.string?.first }
    isFlag = kind == "flag"
    isRepeating = json["isRepeating"]?.bool ?? false
    valueName = json["valueName"]?.string ?? ""
    isShown = json["shouldDisplay"]?.bool ?? true
  }

  /// Whether a configuration file may set it. It cannot set `--help` and `--version`, nor choose a
  /// profile.
  var isSetting: Bool { isShown && !["help", "version", "profile"].contains(name) }

  /// Whether its value is a path, which must not depend on the working directory.
  var isPlace: Bool { valueName == "repo" || valueName == "dir" }
}
