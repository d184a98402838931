internal import ArgumentParser
internal import PolicyEngine
internal import SystemIO

/// A command line together with what the configuration adds to it.
struct ConfiguredCommandLine {
  /// The words as they were given.
  let given: [String]
  /// What the configuration adds, each with its place in the file.
  let added: [Addition]
  /// How many words of the command line name the command.
  private let depth: Int
  /// The words by which the command line takes back flags: `--no-…`.
  private let withdrawn: Set<String>

  /// A word that the configuration adds.
  struct Addition {
    let word: String
    /// The value in it; nil for a flag.
    let value: ByteString?
    /// File, line and column.
    let place: String
  }

  /// Completes a command line by the user's configuration file. What only asks for help, or names
  /// no command, is left as it is.
  static func read(_ words: [String]) throws -> ConfiguredCommandLine {
    let asksForHelp = words.contains { $0 == "--help" || $0 == "-h" } || words.first == "help"
    guard let first = words.first, !first.hasPrefix("-"), !asksForHelp else { return .init(words) }
    let isPlain = !words.contains { $0.hasPrefix("--no-") || $0.hasPrefix("--profile") }
    let text = try Configuration.path.flatMap { try Configuration.text(at: $0) }
    if isPlain, text == nil { return .init(words) }
    let program = KnownCommand.program()
    return try ConfiguredCommandLine(words, try Configuration.read(for: program), program)
  }

  /// A command line without a configuration.
  init(_ words: [String]) {
    (given, added, depth, withdrawn) = (words, [], 0, [])
  }

  /// Adds what a configuration says for the command that the words name; what they set themselves
  /// stays as they set it.
  init(_ words: [String], _ configuration: Configuration?, _ program: KnownCommand) throws {
    let named = program.named(by: words)
    let way = named + (named.last?.meant ?? [])
    given = words
    depth = named.count
    guard let command = way.last else {
      (added, withdrawn) = ([], [])
      return
    }
    let scan = CommandLineScan(Array(words.dropFirst(depth)), command)
    withdrawn = scan.withdrawn
    guard let configuration else {
      added = []
      if let profile = scan.profile { throw Configuration.noFile(profile) }
      return
    }
    added = try configuration.settings(for: way.map(\.name), profile: scan.profile)
      .filter { !scan.names.contains($0.setting.name) }
      .flatMap { Self.additions($0, command, configuration.file) }
  }

  /// The words that are parsed.
  var words: [String] { words(with: added) }

  private func words(with additions: [Addition]) -> [String] {
    let rest = given[depth...]
    let end = rest.firstIndex(of: "--") ?? rest.endIndex
    let kept = rest[..<end].filter { !withdrawn.contains($0) } + rest[end...]
    return Array(given[..<depth] + additions.map(\.word) + kept)
  }

  private static func additions(
    _ found: Configuration.Found, _ command: KnownCommand, _ file: ByteString
  ) -> [Addition] {
    let setting = found.setting
    guard let option = command.option(setting.name) else { return [] }
    let place = "\(file):\(setting.mark)"
    // What the environment names goes before the configuration, but not before a profile that the
    // command line names.
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
  /// The mistake of the configuration because of which the words cannot be parsed; nil when the
  /// command line alone is wrong.
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

  /// A failure, with the place of the value that it speaks of where the configuration sets that.
  func naming(_ failure: Failure) -> Failure {
    let culprit = added.first { addition in
      addition.value.map { failure.message.contains("'\($0)'") } ?? false
    }
    guard let culprit, !failure.message.contains(culprit.place) else { return failure }
    return Failure(failure.status, "\(failure.message) (set in \(culprit.place))", failure.hint)
  }
}

extension Configuration {
  /// A setting that holds.
  struct Found {
    let setting: Setting
    let isOfProfile: Bool
  }

  /// What holds for a command: for each option what the profile says, else the file; in each what is
  /// said for the command itself goes before what is said for all.
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

  /// The settings that concern a command, those that say the most words of it first.
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
      hint: path.map { "write '\($0)'; 'man sandboxctl-config' says how" })
  }

  private func noProfile(_ name: String) -> UsageError {
    let nearest = Resemblance.nearest(to: name, among: Array(profiles.keys))
    let known = profiles.keys.sorted().map { "'\(ByteString($0))'" }.joined(separator: ", ")
    return UsageError(
      "there is no profile '\(ByteString(argument: name))' in '\(file)'",
      hint: nearest.map { "did you mean '\($0)'?" }
        ?? (known.isEmpty ? "add it below 'profiles'" : "it has \(known)"))
  }
}

/// Which options the words of a command line set.
private struct CommandLineScan {
  /// By their long names.
  var names: Set<String> = []
  /// The words that take a flag back.
  var withdrawn: Set<String> = []
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
          withdrawn.insert(word)
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
