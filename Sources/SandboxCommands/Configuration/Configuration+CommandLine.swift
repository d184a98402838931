internal import ArgumentParser
internal import PolicyEngine
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

  /// An argument that the configuration adds.
  struct Addition {
    let word: String
    /// The value in it; nil for a flag.
    let value: ByteString?
    /// File, line and column.
    let place: String
  }

  /// Returns a command line completed by the user's configuration file. One that asks for help or
  /// names no command is not changed.
  static func read(_ words: [String]) throws -> ConfiguredCommandLine {
    let asksForHelp = words.contains { $0 == "--help" || $0 == "-h" } || words.first == "help"
    guard let first = words.first, !first.hasPrefix("-"), !asksForHelp else { return .init(words) }
    let isPlain = !words.contains { $0.hasPrefix("--no-") || $0.hasPrefix("--profile") }
    let text = try Configuration.path.flatMap { try Configuration.text(at: $0) }
    if isPlain, text == nil { return .init(words) }
    let program = KnownCommand.program()
    return try ConfiguredCommandLine(
      words, completedBy: try Configuration.read(for: program), for: program)
  }

  /// Creates a command line without a configuration.
  init(_ words: [String]) {
    (given, added, depth, unsetFlags) = (words, [], 0, [])
  }

  /// Adds the configuration's options for the command that the arguments name, except for those
  /// that they set.
  init(
    _ words: [String], completedBy configuration: Configuration?, for program: KnownCommand
  ) throws {
    let named = program.named(by: words)
    let way = named + (named.last?.meant ?? [])
    given = words
    depth = named.count
    guard let command = way.last else {
      (added, unsetFlags) = ([], [])
      return
    }
    let scan = CommandLineScan(Array(words.dropFirst(depth)), command)
    unsetFlags = scan.unsetFlags
    guard let configuration else {
      added = []
      if let profile = scan.profile { throw Configuration.noFile(profile) }
      return
    }
    added = try configuration.settings(for: way.map(\.name), profile: scan.profile)
      .filter { !scan.names.contains($0.setting.name) }
      .flatMap { Self.additions(of: $0, to: command, in: configuration.file) }
  }

  /// The arguments to parse.
  var words: [String] { words(with: added) }

  private func words(with additions: [Addition]) -> [String] {
    let rest = given[depth...]
    let end = rest.firstIndex(of: "--") ?? rest.endIndex
    let kept = rest[..<end].filter { !unsetFlags.contains($0) } + rest[end...]
    return Array(given[..<depth] + additions.map(\.word) + kept)
  }

  private static func additions(
    of found: Configuration.Found, to command: KnownCommand, in file: ByteString
  ) -> [Addition] {
    let setting = found.setting
    guard let option = command.option(setting.name) else { return [] }
    let place = "\(file):\(setting.mark)"
    // The environment overrides the configuration, but not a profile that the command line names.
    let name = option.name == "repo" && !found.isOfProfile ? "configured-repo" : option.name
    switch setting.value {
    case .flag(false): return []
    case .flag(true): return [Addition(word: "--\(name)", value: nil, place: place)]
    case .values(let values):
      return values.map { Addition(word: "--\(name)=\($0.argument)", value: $0, place: place) }
    }
  }
}

extension ConfiguredCommandLine {
  /// Returns the mistake in the configuration because of which parsing fails; nil if the command
  /// line alone is wrong.
  func mistake() -> ConfigurationError? {
    let culprit =
      added.indices.first { index in
        var others = added
        others.remove(at: index)
        return Self.problem(words(with: others)) == nil
      }.map { added[$0] }
      ?? (Self.problem(words(with: [])) == nil
        ? added.first { Self.problem(words(with: [$0])) != nil } : nil)
    guard let culprit, let problem = Self.problem(words(with: [culprit])) ?? Self.problem(words)
    else { return nil }
    return ConfigurationError(
      description: "cannot use the configuration: \(culprit.place): \(problem.description)",
      hint: problem.hint ?? "correct the file")
  }

  private static func problem(_ words: [String]) -> UsageError? {
    do {
      _ = try SandboxctlCommand.parseAsRoot(words)
      return nil
    } catch {
      return UsageError(
        parser: SandboxctlCommand.message(for: error), SandboxctlCommand.fullMessage(for: error))
    }
  }

  /// Returns a failure with the location of the setting whose value its message quotes, if there is
  /// one.
  func naming(_ failure: Failure) -> Failure {
    let culprit = added.first { addition in
      addition.value.map { failure.message.contains("'\($0)'") } ?? false
    }
    guard let culprit, !failure.message.contains(culprit.place) else { return failure }
    return Failure(
      failure.status, "\(failure.message) (set in \(culprit.place))", hint: failure.hint)
  }
}

extension Configuration {
  /// A setting that applies to a command.
  struct Found {
    let setting: Setting
    let isOfProfile: Bool
  }

  /// Returns the settings that apply to a command. A profile overrides the rest of the file; within
  /// each, settings for the command override settings for all commands.
  func settings(for command: [String], profile name: String?) throws -> [Found] {
    var layers: [[Found]] = []
    if let name {
      guard let profile = profiles[name] else { throw noProfile(name) }
      layers = Self.layers(profile, command, isOfProfile: true)
    }
    layers += Self.layers(settings, command, isOfProfile: false)
    var names: Set<String> = []
    var found: [Found] = []
    for layer in layers {
      found += layer.filter { !names.contains($0.setting.name) }
      names.formUnion(layer.map(\.setting.name))
    }
    return found
  }

  /// Returns the settings for a command, in layers, the most specific first.
  private static func layers(
    _ settings: [Setting], _ command: [String], isOfProfile: Bool
  ) -> [[Found]] {
    (0...command.count).reversed().map { depth in
      settings.filter { $0.command == Array(command.prefix(depth)) }
        .map { Found(setting: $0, isOfProfile: isOfProfile) }
    }
  }

  static func noFile(_ profile: String) -> UsageError {
    UsageError(
      "there is no profile '\(ByteString(argument: profile))': there is no configuration file",
      hint: path.map { "create '\($0)'; 'man sandboxctl-config' describes it" })
  }

  private func noProfile(_ name: String) -> UsageError {
    let nearest = Resemblance.nearest(to: name, among: Array(profiles.keys))
    let known = profiles.keys.sorted().map { "'\(ByteString($0))'" }.joined(separator: ", ")
    return UsageError(
      "there is no profile '\(ByteString(argument: name))' in '\(file)'",
      hint: nearest.map { "did you mean '\($0)'?" }
        ?? (known.isEmpty ? "add it below 'profiles'" : "its profiles are \(known)"))
  }
}

/// The options that a command line sets.
private struct CommandLineScan {
  /// The long names of the options.
  var names: Set<String> = []
  /// The arguments that unset a flag.
  var unsetFlags: Set<String> = []
  var profile: String?

  init(_ words: [String], _ command: KnownCommand) {
    let options = command.all.flatMap(\.options)
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
