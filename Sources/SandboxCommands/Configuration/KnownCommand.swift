internal import ArgumentParser
internal import Codecs

/// A command of the program as its own parser describes it: its options, and the commands below it.
struct KnownCommand {
  let name: String
  let options: [KnownOption]
  let commands: [KnownCommand]
  /// The command below it that is meant where none is named.
  private let standard: String?

  /// The whole program.
  static func program() throws -> KnownCommand {
    let dump = try JSON(parsing: SandboxctlCommand._dumpHelp())
    return KnownCommand(dump["command"] ?? .null)
  }

  private init(_ json: JSON) {
    name = json["commandName"]?.string ?? ""
    options = (json["arguments"]?.array ?? []).compactMap { KnownOption($0) }
    commands = (json["subcommands"]?.array ?? []).map { KnownCommand($0) }
      .filter { $0.name != "help" }
    standard = json["defaultSubcommand"]?.string
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
    standard.flatMap { self[$0] }.map { [$0] + $0.meant } ?? []
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
