import TestSupport
import Testing

/// The commands of the program as listed by its own help.
enum HelpTree {
  /// Returns the words of each command and command group, the program itself (no words) first.
  static func commands(_ cli: CommandLine) throws -> [[String]] {
    let dump = try cli.json("--experimental-dump-help")
    let root = try #require(dump["command"] as? [String: Any])
    return below(root, [])
  }

  private static func below(_ command: [String: Any], _ words: [String]) -> [[String]] {
    let children = command["subcommands"] as? [[String: Any]] ?? []
    return [words]
      + children.flatMap { child -> [[String]] in
        guard let name = child["commandName"] as? String, name != "help" else { return [] }
        return below(child, words + [name])
      }
  }

  /// An option in a command's help.
  struct Option {
    let name: String
    let isFlag: Bool
  }

  /// Returns the options of each command, except those of all commands.
  static func options(_ cli: CommandLine) throws -> [(command: [String], option: Option)] {
    let dump = try cli.json("--experimental-dump-help")
    return options(try #require(dump["command"] as? [String: Any]), [])
  }

  private static func options(
    _ command: [String: Any], _ words: [String]
  ) -> [(command: [String], option: Option)] {
    let children = (command["subcommands"] as? [[String: Any]] ?? [])
      .filter { $0["commandName"] as? String != "help" }
    let below = children.flatMap { options($0, words + [$0["commandName"] as? String ?? ""]) }
    return below
      + (command["arguments"] as? [[String: Any]] ?? []).compactMap { argument in
        let names = argument["names"] as? [[String: Any]] ?? []
        let long = names.first { $0["kind"] as? String == "long" }?["name"] as? String
        guard let long, argument["shouldDisplay"] as? Bool == true,
          !["help", "version", "profile"].contains(long)
        else { return nil }
        return (words, Option(name: long, isFlag: argument["kind"] as? String == "flag"))
      }
  }
}
