internal import ArgumentParser
internal import PolicyEngine
internal import SystemIO

/// An unknown word in the place of a command.
struct UnknownCommand {
  private let words: [String]
  private let known: [String]

  /// Follows the words down the commands. Nil if they name a command, or if an option comes first.
  init?(_ arguments: [String]) {
    var commands = CommandName.all(below: SandboxctlCommand.configuration)
    var words: [String] = []
    for word in arguments.drop(while: { $0 == "help" }) {
      if commands.isEmpty || word.hasPrefix("-") { return nil }
      words.append(word)
      guard let command = commands.first(where: { $0.name == word }) else {
        self.words = words
        known = commands.map(\.name)
        return
      }
      commands = command.below
    }
    return nil
  }

  /// The error.
  var error: UsageError {
    let nearest = Resemblance.nearest(to: words.last ?? "", among: known)
    let above = (["sandboxctl"] + words.dropLast()).joined(separator: " ")
    return UsageError(
      "there is no command '\(ByteString(argument: words.joined(separator: " ")))'",
      hint: (nearest.map { "did you mean '\($0)'? " } ?? "")
        + "'\(ByteString(above)) --help' lists the commands")
  }
}

/// A command's name and the commands below it.
private struct CommandName {
  let name: String
  let below: [CommandName]

  static func all(below configuration: CommandConfiguration) -> [CommandName] {
    var names: [CommandName] = []
    for type in configuration.subcommands {
      let below = Self.configuration(of: type)
      names.append(CommandName(name: below.commandName ?? "", below: all(below: below)))
    }
    return names
  }

  private static func configuration(
    of type: any ParsableCommand.Type
  ) -> CommandConfiguration { type.configuration }
}
