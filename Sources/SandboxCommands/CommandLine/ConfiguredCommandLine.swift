internal import ArgumentParser
internal import SystemIO

/// A command line completed by the configuration.
struct ConfiguredCommandLine {
  /// The arguments as given.
  let given: [String]
  /// The arguments that the configuration adds, with their locations in the file.
  let added: [Addition]
  /// The number of arguments that name the command.
  private let depth: Int
  /// The arguments that unset a flag: `--no-…`.
  private let unsetFlags: Set<String>
  /// The root command; nil without a configuration.
  private let program: KnownCommand?

  /// An argument that the configuration adds.
  struct Addition {
    /// One word; with an empty value two, because the parser takes it only as a separate word.
    let words: [String]
    /// The value; nil for a flag.
    let value: ByteString?
    /// File, line and column.
    let location: String
  }

  /// Returns a command line completed by the user's configuration file. One that asks for help or
  /// names no command is not changed.
  static func read(
    _ words: [String], of root: any ParsableCommand.Type
  ) throws -> ConfiguredCommandLine {
    let asksForHelp = words.contains { $0 == "--help" || $0 == "-h" } || words.first == "help"
    guard let first = words.first, !first.hasPrefix("-"), !asksForHelp else { return .init(words) }
    let isPlain = !words.contains { $0.hasPrefix("--no-") || $0.hasPrefix("--profile") }
    let path = Configuration.path ?? ""
    let text = path.isEmpty ? nil : try Configuration.text(at: path)
    if isPlain, text == nil { return .init(words) }
    let program = KnownCommand(root)
    let configuration = try text.map {
      try Configuration($0, at: path, for: program, running: program.commands(of: words).last)
    }
    return try ConfiguredCommandLine(words, completedBy: configuration, for: program)
  }

  /// Creates a command line without a configuration.
  init(_ words: [String]) {
    (given, added, depth, unsetFlags, program) = (words, [], 0, [], nil)
  }

  /// Adds the configuration's options for the command that the arguments name, except for those
  /// that they set.
  init(
    _ words: [String], completedBy configuration: Configuration?, for program: KnownCommand
  ) throws {
    let (named, commands) = (program.named(by: words), program.commands(of: words))
    given = words
    depth = named.count
    self.program = program
    guard let command = commands.last else {
      (added, unsetFlags) = ([], [])
      return
    }
    let scan = Scan(Array(words.dropFirst(depth)), command)
    unsetFlags = scan.unsetFlags
    guard let configuration else {
      added = []
      if let profile = scan.profile { throw Configuration.noFile(profile) }
      return
    }
    let settings = try configuration.settings(for: commands.map(\.name), profile: scan.profile)
      .filter { !scan.hasOtherKey(than: $0) && command.option($0.setting.name) != nil }
      .filter { !$0.setting.command.isEmpty || command.sharesOption($0.setting.name) }
    added = SettingSelection.of(
      settings, besides: scan.names, chosen: scan.given, by: command.precedence
    ).flatMap { Self.additions(of: $0, to: command, in: configuration.file) }
  }

  /// The arguments to parse.
  var words: [String] { words(with: added) }

  private func words(with additions: [Addition]) -> [String] {
    let rest = given[depth...]
    let end = rest.firstIndex(of: "--") ?? rest.endIndex
    let kept = rest[..<end].filter { !unsetFlags.contains($0) } + rest[end...]
    return Array(given[..<depth] + additions.flatMap(\.words) + kept)
  }

  private static func additions(
    of found: Configuration.FoundSetting, to command: KnownCommand, in file: ByteString
  ) -> [Addition] {
    let setting = found.setting
    guard let option = command.option(setting.name) else { return [] }
    let location = "\(file):\(setting.mark)"
    // The environment overrides the configuration, but not a profile that the command line names.
    let name = option.name == "repo" && !found.isOfProfile ? "configured-repo" : option.name
    switch setting.value {
    case .flag(false): return []
    case .flag(true): return [Addition(words: ["--\(name)"], value: nil, location: location)]
    case .values(let values):
      return values.map { value in
        let words = value.isEmpty ? ["--\(name)", ""] : ["--\(name)=\(value.argument)"]
        return Addition(words: words, value: value, location: location)
      }
    }
  }
}

extension ConfiguredCommandLine {
  /// Returns the mistake in the configuration that makes parsing fail; nil if the command line
  /// alone is wrong.
  func mistake() -> ConfigurationError? {
    let culprit =
      added.indices.first { index in
        var others = added
        others.remove(at: index)
        return problem(words(with: others)) == nil
      }.map { added[$0] }
      ?? (problem(words(with: [])) == nil
        ? added.first { problem(words(with: [$0])) != nil } : nil)
    guard let culprit, let problem = problem(words(with: [culprit])) ?? problem(words)
    else { return nil }
    return ConfigurationError(
      problem.description, at: culprit.location, hint: problem.hint ?? "correct the file")
  }

  /// Returns the mistake in a command line; nil if there is none, or without a configuration.
  private func problem(_ words: [String]) -> UsageError? {
    do throws(UsageError) {
      _ = try program?.parse(words)
      return nil
    } catch { return error }
  }

  /// Returns a failure with the location of the setting whose value its message quotes, if there is
  /// one.
  func naming(_ failure: Failure) -> Failure {
    let culprit = added.first { addition in
      addition.value.map { failure.message.contains("'\($0)'") } ?? false
    }
    guard let culprit, !failure.message.contains(culprit.location) else { return failure }
    return failure.set(in: culprit.location)
  }
}

extension ConfiguredCommandLine {
  /// The options that a command line sets.
  private struct Scan {
    /// The long names of the options.
    var names: Set<String> = []
    /// The arguments that unset a flag.
    var unsetFlags: Set<String> = []
    /// The options that the words give, without flags that they unset, and
    /// `OptionPrecedence.arguments` if there are any and a choice depends on it.
    var given: Set<String> = []
    var profile: String?

    /// The options that name a key; the configuration must not add another one.
    private static let keys: Set<String> = [
      "identity", "passphrase", "passphrase-command", "passphrase-file", "plain", "recipient",
      "recipients-file",
    ]
    /// The options that name the password of another program's backup, for which the same holds.
    private static let passwords: Set<String> = ["password", "password-command", "password-file"]
    /// The environment variables with the same effect.
    private static let keyVariables = ["SANDBOXCTL_IDENTITY_FILE"] + passphraseVariables
    private static let passphraseVariables = [
      "SANDBOXCTL_PASSPHRASE_COMMAND", "SANDBOXCTL_PASSPHRASE_FILE",
    ]

    /// Whether a setting names a key, and the command line or the environment names one as well.
    /// The environment overrides the configuration, but not a profile that the command line names.
    func hasOtherKey(than found: Configuration.FoundSetting) -> Bool {
      if Self.passwords.contains(found.setting.name) {
        return !names.isDisjoint(with: Self.passwords)
      }
      guard Self.keys.contains(found.setting.name) else { return false }
      if !names.isDisjoint(with: Self.keys) { return true }
      return !found.isOfProfile && Self.keyVariables.contains { Host.environment($0) != nil }
    }

    init(_ words: [String], _ command: KnownCommand) {
      find(words, command)
      given = names.subtracting(unsetFlags.map { String($0.dropFirst("--no-".count)) })
      if Self.passphraseVariables.contains(where: { Host.environment($0) != nil }) {
        given.insert(OptionPrecedence.passphraseVariable)
      }
      guard command.precedence.includeArguments else { return }
      let arguments = Self.arguments(in: words, command)
      if !arguments.isEmpty { given.insert(OptionPrecedence.arguments) }
      given.formUnion(command.choices(of: arguments))
    }

    /// Returns the words that are neither options nor their values.
    private static func arguments(in words: [String], _ command: KnownCommand) -> [String] {
      let options = command.all.flatMap(\.options)
      var arguments: [String] = []
      var isValue = false
      for (index, word) in words.enumerated() {
        if isValue {
          isValue = false
        } else if word == "--" {
          return arguments + words[(index + 1)...]
        } else if word.hasPrefix("--") {
          let name = word.dropFirst(2)
          isValue = options.contains { $0.name == name && !$0.isFlag }
        } else if word.hasPrefix("-"), let last = word.last, word.count > 1 {
          isValue = options.contains { $0.letters.contains(last) && !$0.isFlag }
        } else {
          arguments.append(word)
        }
      }
      return arguments
    }

    private mutating func find(_ words: [String], _ command: KnownCommand) {
      // Read on demand: most command lines need none of them.
      lazy var options = command.all.flatMap(\.options)
      for (index, word) in words.enumerated() {
        if word == "--" { break }
        if word.hasPrefix("--") {
          let name = String(word.dropFirst(2).prefix { $0 != "=" })
          if name.hasPrefix("no-"), !options.contains(where: { $0.name == name }),
            options.contains(where: { $0.name == name.dropFirst(3) && $0.isFlag })
          {
            names.insert(String(name.dropFirst(3)))
            unsetFlags.insert(word)
          }
          names.insert(name)
          if name == "profile" {
            let hasValue = word.contains("=")
            profile =
              hasValue
              ? String(word.dropFirst("--profile=".count))
              : words.indices.contains(index + 1) ? words[index + 1] : nil
          }
        } else if word.hasPrefix("-") {
          for letter in word.dropFirst() {
            names.formUnion(options.filter { $0.letters.contains(letter) }.map(\.name))
          }
        }
      }
    }
  }
}
