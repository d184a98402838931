internal import Codecs
internal import PolicyEngine
internal import RemoteStorage
internal import SystemIO

/// The user's configuration file: default options for all commands or for one, each also by
/// profile.
///
/// sandboxctl-config(5) describes its grammar. Each key is checked against the program's own
/// commands and options. A mistake is reported with file, line and column.
struct Configuration {
  /// The path of the file, for messages.
  let file: ByteString
  /// The settings outside of profiles.
  let settings: [Setting]
  /// The settings of each profile.
  let profiles: [String: [Setting]]

  /// An option with its value.
  struct Setting {
    /// The words of the command it applies to; empty for every command that has the option.
    let command: [String]
    /// The option's long name.
    let name: String
    let value: Value
    /// Its position in the file.
    let mark: Mark

    /// Whether it chooses anything: false flags and empty lists do not.
    var isChoice: Bool { value != .flag(false) && value != .values([]) }

    /// The values as texts; none for a flag.
    var values: [String] {
      if case .values(let all) = value { all.map(\.description) } else { [] }
    }

    /// The value of an option.
    enum Value: Equatable {
      case flag(Bool)
      /// One value, unless the option can be repeated.
      case values([ByteString])
    }
  }

  /// The path of the file; nil if the environment names no directory for it.
  static var path: ByteString? { Host.configurationDirectory?.appending("sandboxctl/config.yaml") }

  /// The maximum size of the file, in bytes.
  static let maximumSize = 1 << 20

  /// Returns the bytes of a file, or nil if there is none.
  static func text(at path: ByteString) throws -> [UInt8]? {
    let file: Descriptor
    do throws(SystemError) {
      file = try Descriptor.open(path: path)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
    guard let bytes = try file.readAll(limit: maximumSize) else {
      throw ConfigurationError(
        "the file is larger than \(maximumSize) bytes", at: Mark(line: 1, column: 1), in: path,
        hint: "check that it is the right file")
    }
    return bytes
  }

  /// Parses the text of a file.
  ///
  /// - Parameter command: the command that runs. An option for all commands is read as this one
  ///   declares it; if it has no such option, as any other command does.
  init(
    _ text: [UInt8], at path: ByteString, for program: KnownCommand, running command: KnownCommand?
  ) throws {
    file = path
    var reader = Reader(file: path, program: program, command: command)
    (settings, profiles) = try reader.document(text)
  }
}

extension Configuration {
  /// A setting that applies to a command.
  struct FoundSetting {
    let setting: Setting
    let isOfProfile: Bool

    /// A part of the file, which a more specific part may override.
    struct Part: Equatable {
      let isOfProfile: Bool
      let command: [String]
    }

    var part: Part { Part(isOfProfile: isOfProfile, command: setting.command) }
  }

  /// Returns the settings that apply to a command, the most specific ones first, with those that
  /// they override. A profile overrides the rest of the file; within each, settings for the command
  /// override settings for all commands.
  func settings(for command: [String], profile name: String?) throws -> [FoundSetting] {
    var layers: [[FoundSetting]] = []
    if let name {
      guard let profile = profiles[name] else { throw noProfile(name) }
      layers = Self.layers(profile, command, isOfProfile: true)
    }
    layers += Self.layers(settings, command, isOfProfile: false)
    return layers.flatMap(\.self)
  }

  /// Returns the settings for a command, in layers, the most specific first.
  private static func layers(
    _ settings: [Setting], _ command: [String], isOfProfile: Bool
  ) -> [[FoundSetting]] {
    (0...command.count).reversed().map { depth in
      settings.filter { $0.command == Array(command.prefix(depth)) }
        .map { FoundSetting(setting: $0, isOfProfile: isOfProfile) }
    }
  }

  static func noFile(_ profile: String) -> UsageError {
    UsageError(
      .unknownProfile,
      "there is no profile '\(ByteString(argument: profile))': there is no configuration file",
      hint: path.map { "create '\($0)'; 'man sandboxctl-config' describes it" })
  }

  private func noProfile(_ name: String) -> UsageError {
    let nearest = Resemblance.nearest(to: name, among: Array(profiles.keys))
    let known = profiles.keys.sorted().map { "'\(ByteString($0))'" }.joined(separator: ", ")
    return UsageError(
      .unknownProfile, "there is no profile '\(ByteString(argument: name))' in '\(file)'",
      hint: nearest.map { "did you mean '\($0)'?" }
        ?? (known.isEmpty ? "add it below 'profiles'" : "its profiles are \(known)"))
  }
}

extension Configuration {
  /// Reads settings from the nodes of a configuration file, and reports the first mistake.
  struct Reader {
    private let file: ByteString
    private let program: KnownCommand
    /// The command that runs.
    private let command: KnownCommand?

    init(file: ByteString, program: KnownCommand, command: KnownCommand?) {
      self.file = file
      self.program = program
      self.command = command
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
        let option = setting(entry)
        // `exclude` is both: the options of the command are a mapping.
        if let command = program[entry.name], option == nil || entry.value.mapping != nil {
          return try settings(of: command, [], entry)
        }
        guard let option else {
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
        guard let option = Self.settings(entry.name, of: command.all).first else {
          throw unknown(entry, options: command.all, commands: command.commands, of: shown)
        }
        return [try setting(option, for: words, entry)]
      }
    }

    /// Returns the option that a setting for all commands sets. If the running command has no such
    /// option, a value is valid if any command accepts it: a list if the option can be repeated in
    /// one of them, a repository if it names one in one of them.
    private func setting(_ entry: YAMLNode.Entry) -> KnownCommand.Option? {
      if let command, command.sharesOption(entry.name),
        let own = Self.settings(entry.name, of: [command]).first
      {
        return own
      }
      let known = Self.settings(entry.name, of: program.all)
      return known.first { (try? value($0, entry.value)) != nil } ?? known.first
    }

    /// Returns the options with a name that a file may set. Commands are described on demand.
    private static func settings(
      _ name: String, of commands: [KnownCommand]
    ) -> some Collection<KnownCommand.Option> {
      commands.lazy.compactMap { $0.option(name) }.filter(\.isSetting)
    }

    // MARK: - Values

    private func setting(
      _ option: KnownCommand.Option, for command: [String], _ entry: YAMLNode.Entry
    ) throws -> Configuration.Setting {
      Configuration.Setting(
        command: command, name: option.name, value: try value(option, entry.value),
        mark: entry.value.mark)
    }

    private func value(
      _ option: KnownCommand.Option, _ node: YAMLNode
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

    private func text(_ option: KnownCommand.Option, _ node: YAMLNode) throws -> ByteString {
      guard let text = node.text, !node.isNull, !text.isEmpty || !option.isPath else {
        throw mistake(
          node.mark, "'\(option.name)' is \(node.kindName); expected a <\(option.valueName)>")
      }
      if text == "~" || text.hasPrefix("~/"), let home = Host.environment("HOME") {
        return ByteString(home.bytes + Array(text.utf8.dropFirst()))
      }
      if option.isRepository, try isOnAnotherHost(text, of: option, at: node.mark) {
        return ByteString(text)
      }
      guard !option.isPath || text.hasPrefix("/") else {
        throw mistake(
          node.mark,
          "'\(option.name)' is '\(ByteString(text))'; expected a path that begins with / or ~/",
          hint: "a path in the configuration must not depend on the working directory")
      }
      return ByteString(text)
    }

    /// Whether the text names a repository that is not a directory on this host.
    private func isOnAnotherHost(
      _ text: String, of option: KnownCommand.Option, at mark: Mark
    ) throws -> Bool {
      do throws(OperationError) {
        return try RepositoryLocation(parsing: ByteString(text)).localPath == nil
      } catch {
        let (subject, reason) = (error.parts.subject ?? "", error.parts.reason ?? "")
        throw mistake(
          mark, "'\(option.name)' is '\(subject)': \(reason)", hint: error.hint ?? "correct it")
      }
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

    private func mistake(
      _ mark: Mark, _ problem: String, hint: String? = nil
    ) -> ConfigurationError {
      ConfigurationError(problem, at: mark, in: file, hint: hint)
    }
  }
}
