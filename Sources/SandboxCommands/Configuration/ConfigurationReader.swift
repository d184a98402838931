internal import Codecs
internal import PolicyEngine
internal import SystemIO

/// Reads settings from the nodes of a configuration file, and reports the first mistake.
struct ConfigurationReader {
  private let file: ByteString
  private let program: KnownCommand

  init(file: ByteString, program: KnownCommand) {
    self.file = file
    self.program = program
  }

  typealias Settings = [Configuration.Setting]

  /// Reads the whole file. An empty file has no settings.
  mutating func document(
    _ text: [UInt8]
  ) throws -> (settings: Settings, profiles: [String: Settings]) {
    guard let root = try node(text), !root.isNull else { return ([], [:]) }
    let entries = try mapping(root, "the file")
    var settings: Settings = []
    var profiles: [String: Settings] = [:]
    for entry in entries {
      if entry.name == "profiles" {
        for profile in try mapping(entry.value, "'profiles'") {
          profiles[profile.name] = try scope(
            mapping(profile.value, "the profile '\(ByteString(profile.name))'"))
        }
      } else {
        settings += try scope([entry])
      }
    }
    return (settings, profiles)
  }

  private func node(_ text: [UInt8]) throws -> YAMLNode? {
    do throws(CodecError) {
      return try YAML.parse(text)
    } catch {
      if Self.isEmpty(text) { return nil }
      let mark = error.mark ?? Mark(line: 1, column: 1)
      throw mistake(mark, error.reason, hint: error.hint)
    }
  }

  /// Whether a text consists of comments and blank lines only.
  private static func isEmpty(_ text: [UInt8]) -> Bool {
    text.split(separator: UInt8(ascii: "\n")).allSatisfy { line in
      let first = line.first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\r") }
      return first == nil || first == UInt8(ascii: "#")
    }
  }

  /// Returns the settings of the file's top level, or of a profile: options for all commands, and
  /// commands.
  private func scope(_ entries: [YAMLNode.Entry]) throws -> Settings {
    try entries.flatMap { entry -> Settings in
      if let command = program[entry.name] { return try settings(of: command, [], entry) }
      guard let option = Self.setting(entry.name, of: program.all) else {
        throw unknown(entry, options: program.all, commands: program.commands + [])
      }
      return [try setting(option, for: [], entry)]
    }
  }

  /// Returns the settings of a command and of its subcommands.
  private func settings(
    of command: KnownCommand, _ above: [String], _ entry: YAMLNode.Entry
  ) throws -> Settings {
    let words = above + [command.name]
    let shown = words.joined(separator: " ")
    return try mapping(entry.value, "the command '\(shown)'").flatMap { entry -> Settings in
      if let below = command[entry.name] { return try settings(of: below, words, entry) }
      guard let option = Self.setting(entry.name, of: command.all) else {
        throw unknown(entry, options: command.all, commands: command.commands, of: shown)
      }
      return [try setting(option, for: words, entry)]
    }
  }

  private static func setting(_ name: String, of commands: [KnownCommand]) -> KnownOption? {
    commands.lazy.compactMap { $0.option(name) }.first { $0.isSetting }
  }

  // MARK: - Values

  private func setting(
    _ option: KnownOption, for command: [String], _ entry: YAMLNode.Entry
  ) throws -> Configuration.Setting {
    Configuration.Setting(
      command: command, name: option.name, value: try value(option, entry.value),
      mark: entry.value.mark)
  }

  private func value(
    _ option: KnownOption, _ node: YAMLNode
  ) throws -> Configuration.Setting.Value {
    if option.isFlag {
      guard let flag = node.bool else {
        throw mistake(node.mark, "'\(option.name)' is \(node.kindName); expected true or false")
      }
      return .flag(flag)
    }
    if let elements = node.sequence {
      guard option.isRepeating else {
        throw mistake(node.mark, "'\(option.name)' is a list; expected one <\(option.valueName)>")
      }
      return .values(try elements.map { try text(option, $0) })
    }
    return .values([try text(option, node)])
  }

  private func text(_ option: KnownOption, _ node: YAMLNode) throws -> ByteString {
    guard let text = node.text, !node.isNull, !text.isEmpty else {
      throw mistake(
        node.mark, "'\(option.name)' is \(node.kindName); expected a <\(option.valueName)>")
    }
    if text == "~" || text.hasPrefix("~/"), let home = Host.environment("HOME") {
      return ByteString(home.bytes + Array(text.utf8.dropFirst()))
    }
    guard !option.isPlace || text.hasPrefix("/") else {
      throw mistake(
        node.mark,
        "'\(option.name)' is '\(ByteString(text))'; expected a path that begins with / or ~/",
        hint: "a path in the configuration must not depend on the working directory")
    }
    return ByteString(text)
  }

  private func mapping(_ node: YAMLNode, _ what: String) throws -> [YAMLNode.Entry] {
    guard let entries = node.mapping else {
      throw mistake(node.mark, "\(what) is \(node.kindName); expected a mapping")
    }
    return entries
  }

  // MARK: - Mistakes

  private func unknown(
    _ entry: YAMLNode.Entry, options: [KnownCommand], commands: [KnownCommand],
    of command: String? = nil
  ) -> ConfigurationError {
    let names =
      Set(options.flatMap(\.options).filter(\.isSetting).map(\.name)).sorted()
      + commands.map(\.name) + (command == nil ? ["profiles"] : [])
    let whose =
      command.map { "the command '\($0)' has no option" } ?? "there is no option or command"
    let hint = Resemblance.nearest(to: entry.name, among: names).map { "did you mean '\($0)'?" }
    return mistake(
      entry.keyMark, "\(whose) '\(ByteString(entry.name))'",
      hint: hint ?? command.map { "'sandboxctl \($0) --help' lists its options" })
  }

  private func mistake(_ mark: Mark, _ problem: String, hint: String? = nil) -> ConfigurationError {
    ConfigurationMistake(problem, at: mark, in: file, hint: hint).error
  }
}
