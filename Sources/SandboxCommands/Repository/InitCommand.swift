internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl init [REPO]`: makes a repository, and the one that is used from then on.
struct InitCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "init",
      abstract: "Make a repository, the place where backups live",
      discussion: """
        A repository is a directory of ordinary archives; its README.txt says how to recover them by \
        hand. Whether it is encrypted has to be decided here: --plain stores as it is, and is all that \
        there is yet. On a terminal init asks when that is not said; else it ends with status 2.

        The new repository is written into the configuration file, so that 'sandboxctl backup' alone \
        stores in it from then on; a repository that the file names already stays, which is said. \
        Without REPO the user's own is made, in $XDG_DATA_HOME/sandboxctl/repository. It lies on the \
        disk of the data, of which each backup reminds, unless --accept-same-disk was given once.

        \(Examples.text(["sandboxctl init repo --plain"]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The directory to make it in, new or empty; else the user's own.", valueName: "repo"),
    completion: .directory)
  var repository: ByteString?

  @Flag(help: "Store without encryption: whoever can read the directory can read the data.")
  var plain = false

  @Flag(help: "Remind no more that the user's own repository is on the same disk as the data.")
  var acceptSameDisk = false

  @Flag(help: "Write nothing into the configuration file.")
  var noDefault = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let place = try place()
    if acceptSameDisk, repository == nil, (try? place.open()) != nil {
      try accept(console)
      return .done
    }
    try requireDecision(place, console)
    let storage = try LocalStorage.create(path: place.path)
    let made = try Repository.create(in: storage, program: Version.text)
    if !output.json, !output.quiet {
      try console.result("repository \(made.id.hex.prefix(8)) made in \(made.place), plain")
    }
    let file = try enter(place, console)
    if acceptSameDisk { try accept(console) }
    if output.json {
      try console.result(
        .object(
          [JSON.Member("repository", .string(made.id.hex))] + JSON.path(place.path)
            + [
              JSON.Member("encryption", .string("none")),
              JSON.Member("configuration", file.map { .string("\($0)") } ?? .null),
            ]))
    }
    return .done
  }

  /// Whether the repository is encrypted is nobody's to decide but the user's.
  private func requireDecision(_ place: RepositoryLocation, _ console: Console) throws {
    if plain { return }
    guard console.canAsk, !output.quiet else {
      throw UsageError(
        "cannot make the repository '\(place.path)': nobody said how it is to be kept",
        hint: "give '--plain' to store without encryption")
    }
    console.note(
      "a repository cannot be encrypted yet, by this version of the program: whoever "
        + "can read '\(place.path)' will be able to read all that is stored in it")
    if try console.ask("Make a repository without encryption?") { return }
    throw LifecycleError(
      .failed, "the repository '\(place.path)' was not made: it was not wanted without encryption",
      hint: "on a disk that is encrypted as a whole '--plain' gives nothing away")
  }

  private func place() throws -> RepositoryLocation {
    if let repository { return RepositoryLocation(path: repository, isStandard: false) }
    guard let standard = RepositoryLocation.standard else {
      throw UsageError(
        "there is no directory of this user's data: HOME is not set",
        hint: "name a directory for the repository")
    }
    return standard
  }

  /// Writes the repository into the configuration; gives the file when it names the repository now.
  private func enter(_ place: RepositoryLocation, _ console: Console) throws -> ByteString? {
    if noDefault || place.isStandard { return nil }
    guard let path = try Host.realPath(place.path).utf8 else {
      if output.quiet { return nil }
      console.note("the path is not UTF-8, so the configuration cannot name it: use '--repo'")
      return nil
    }
    return try set(ConfigurationEdit.Line("repo", path: path), console) {
      "'sandboxctl backup' stores in it from now on: \($0)"
    }
  }

  private func accept(_ console: Console) throws {
    _ = try set(ConfigurationEdit.Line(flag: "accept-same-disk"), console) {
      "the same disk is accepted from now on: \($0)"
    }
  }

  private func set(
    _ line: ConfigurationEdit.Line, _ console: Console, _ done: (String) -> String
  ) throws -> ByteString? {
    guard let edit = ConfigurationEdit(program: KnownCommand.program()) else { return nil }
    let byHand = "to change that, write '\(line.name): \(line.value)'"
    let outcome: ConfigurationEdit.Outcome
    do {
      outcome = try edit.set(line)
    } catch let error as SystemError {
      console.warning("the configuration stays as it is: \(error); \(byHand) there")
      return nil
    }
    switch outcome {
    case .written(let file):
      if !output.quiet, !output.json { try console.result(done(Paths.text(file))) }
      return file
    case .present(let file): return file
    case .otherwise(let place, let value):
      if output.quiet { return nil }
      console.note("\(place) has '\(ByteString(value))', which stays: \(byHand) there")
    case .refused(let file, let reason):
      if output.quiet { return nil }
      console.note("\(file) stays as it is, since \(reason): \(byHand) there")
    }
    return nil
  }
}
