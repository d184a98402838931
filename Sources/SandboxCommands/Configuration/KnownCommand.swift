internal import ArgumentParser
internal import Codecs

/// A command of the program as its own parser describes it: its options, and the commands below it.
///
/// The parser takes a third of a millisecond to describe one command, so each is asked for when its
/// options are: most runs with a configuration need those of two.
final class KnownCommand {
  let name: String
  let commands: [KnownCommand]
  private let type: any ParsableCommand.Type

  /// Its own options; what only groups others has none but those that every command has.
  private(set) lazy var options: [KnownOption] = commands.isEmpty ? Self.options(of: type) : []

  /// The whole program.
  static func program() -> KnownCommand { KnownCommand(SandboxctlCommand.self) }

  private init(_ type: any ParsableCommand.Type) {
    self.type = type
    name = type._commandName
    commands = type.configuration.subcommands.map { KnownCommand($0) }
  }

  private static func options(of type: any ParsableCommand.Type) -> [KnownOption] {
    // What the parser says of itself is always JSON.
    let dump = try? JSON(parsing: type._dumpHelp())
    return (dump?["command"]?["arguments"]?.array ?? []).compactMap { KnownOption($0) }
  }

  /// The command below this one of that name.
  subscript(_ name: String) -> KnownCommand? { commands.first { $0.name == name } }

  /// The option of that long name.
  func option(_ name: String) -> KnownOption? { options.first { $0.name == name } }

  /// This command and all below it.
  var all: [KnownCommand] { [self] + commands.flatMap(\.all) }

  /// The commands below this one that words of a command line name, from the first word on.
  func named(by words: some Collection<String>) -> [KnownCommand] {
    guard let first = words.first, let next = self[first] else { return [] }
    return [next] + next.named(by: words.dropFirst())
  }

  /// The command that is meant where no further word names one, and those on the way to it.
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
  /// What the help calls its value.
  let valueName: String
  /// Whether the help shows it; others are not for people.
  let isShown: Bool

  /// Nil for what is no option with a long name.
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

  /// Whether a configuration file may set it: not what answers instead of working, nor the choice of
  /// what is taken from the file.
  var isSetting: Bool { isShown && !["help", "version", "profile"].contains(name) }

  /// Whether its value is a place in the file system that must not depend on where the program runs.
  var isPlace: Bool { valueName == "repo" || valueName == "dir" }
}
