internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl init REPO`: makes a repository.
struct InitCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "init",
      abstract: "Make a repository, the place where backups live",
      discussion: """
        A repository is a folder of ordinary archives; its README.txt says how to recover them by \
        hand. Whether it is encrypted has to be decided here: --plain stores as it is.

        \(Examples.text(["sandboxctl init repo --plain"]))
        """)
  }

  @Argument(help: ArgumentHelp("The folder to make it in: new or empty.", valueName: "repo"))
  var repository: String

  @Flag(help: "Store without encryption: whoever can read the folder can read the data.")
  var plain = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    guard plain else {
      throw UsageError(
        "cannot make the repository '\(ByteString(repository))': nobody said how it is to be kept",
        hint: "give '--plain' to store without encryption")
    }
    let storage = try LocalStorage.create(path: ByteString(repository))
    let made = try Repository.create(in: storage, program: Version.text)
    if output.json {
      try console.result(
        .object(
          [JSON.Member("repository", .string(made.id.hex))] + JSON.path(ByteString(repository))
            + [JSON.Member("encryption", .string("none"))]))
    } else if !output.quiet {
      try console.result("repository \(made.id.hex.prefix(8)) made in \(made.place), plain")
    }
    return .done
  }
}
