internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl init [REPO]`: creates a repository and makes it the default.
struct InitCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "init",
      abstract: "Create a repository for backups",
      discussion: """
        Creates a repository: a directory of ordinary archives, with a README.txt that describes \
        how to recover them by hand. Encryption is not available yet; --plain confirms that. \
        Without it, init asks on a terminal, and otherwise ends with status 2.

        The repository is written to the configuration file as the default, unless the file \
        already names one. Without REPO the user's own repository is created, in \
        $XDG_DATA_HOME/sandboxctl/repository. It is on the same disk as the data, which each \
        backup notes unless --accept-same-disk was given.

        \(Examples.text(["sandboxctl init repo --plain"]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The directory to create, new or empty (default: the user's own repository).",
      valueName: "repo"),
    completion: .directory)
  var repository: ByteString?

  @Flag(help: "Store without encryption: anyone who can read the directory can read the data.")
  var plain = false

  @Flag(help: "Omit the note that the user's own repository is on the same disk as the data.")
  var acceptSameDisk = false

  @Flag(help: "Do not write to the configuration file.")
  var noDefault = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let choice = try choice()
    if acceptSameDisk, repository == nil, (try? choice.open()) != nil {
      try accept(console)
      return .done
    }
    try requireDecision(choice, console)
    let storage = try LocalStorage.create(path: choice.path)
    let made = try Repository.create(in: storage, program: Version.text)
    if !output.json, !output.quiet {
      try console.result(
        "created repository \(made.id.hex.prefix(8)) in \(made.location), not encrypted")
    }
    let file = try enter(choice, console)
    if acceptSameDisk { try accept(console) }
    if output.json {
      try console.result(
        .object(
          [JSON.Member("repository", .string(made.id.hex))] + JSON.path(choice.path)
            + [
              JSON.Member("encryption", .string("none")),
              JSON.Member("configuration", file.map { .string("\($0)") } ?? .null),
            ]))
    }
    return .done
  }

  /// Asks whether to store without encryption, unless `--plain` is given. Only the user decides
  /// that.
  private func requireDecision(_ choice: RepositoryOptions.Choice, _ console: Console) throws {
    if plain { return }
    guard console.canAsk, !output.quiet else {
      throw UsageError(
        .optionRequired, "cannot create the repository '\(choice.path)': '--plain' is not given",
        hint: "add '--plain' to store without encryption")
    }
    console.note(
      "this version cannot encrypt a repository: anyone who can read '\(choice.path)' will be able "
        + "to read all data in it")
    if try console.confirm("Create a repository without encryption?") { return }
    throw OperationError(
      .failed, code: .declined,
      "the repository '\(choice.path)' was not created: storing without encryption was declined",
      hint: "use '--plain' on a disk that is encrypted as a whole")
  }

  private func choice() throws -> RepositoryOptions.Choice {
    if let repository { return RepositoryOptions.Choice(path: repository, isStandard: false) }
    guard let standard = RepositoryOptions.Choice.standard else {
      throw UsageError(
        .environmentMissing, "cannot find the user's data directory: HOME is not set",
        hint: "give a directory for the repository")
    }
    return standard
  }

  /// Writes the repository to the configuration. Returns the file if it names the repository.
  private func enter(_ choice: RepositoryOptions.Choice, _ console: Console) throws -> ByteString? {
    if noDefault || choice.isStandard { return nil }
    guard let path = try Host.realPath(choice.path).utf8 else {
      if output.quiet { return nil }
      console.note("the path is not UTF-8, so the configuration cannot name it: use '--repo'")
      return nil
    }
    return try set(Configuration.Edit.Line("repo", path: path), console) {
      "it is now the default repository: \($0)"
    }
  }

  private func accept(_ console: Console) throws {
    _ = try set(Configuration.Edit.Line(flag: "accept-same-disk"), console) {
      "the note about the same disk is now disabled: \($0)"
    }
  }

  private func set(
    _ line: Configuration.Edit.Line, _ console: Console, saying done: (String) -> String
  ) throws -> ByteString? {
    guard let edit = Configuration.Edit(program: KnownCommand(console.root)) else { return nil }
    let byHand = "to change it, write '\(line.name): \(line.value)'"
    let outcome: Configuration.Edit.Outcome
    do {
      outcome = try edit.set(line)
    } catch let error as SystemError {
      console.warning("cannot change the configuration: \(error); \(byHand) there")
      return nil
    }
    switch outcome {
    case .written(let file):
      if !output.quiet, !output.json { try console.result(done(Paths.text(file))) }
      return file
    case .present(let file): return file
    case .otherwise(let location, let value):
      if output.quiet { return nil }
      console.note(
        "\(location) is set to '\(ByteString(value))' and was not changed: \(byHand) there")
    case .refused(let file, let reason):
      if output.quiet { return nil }
      console.note("\(file) was not changed, because \(reason): \(byHand) there")
    }
    return nil
  }
}
