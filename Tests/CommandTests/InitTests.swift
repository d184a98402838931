import Foundation
import SystemIO
import TestSupport
import Testing

/// `init` on a terminal, where it asks for missing confirmation.
struct InitTests {
  private let cli: CommandLine

  init() throws { cli = try CommandLine() }

  /// Runs a command on a terminal with typed input.
  private func terminal(_ line: String, typing text: String) throws -> Program.Outcome {
    try cli.run(
      [], under: ["bash", "-c", "PROGRAM=$0 script -qec '$PROGRAM \(line)' /dev/null"],
      input: Array(text.utf8))
  }

  private static let encrypt = "Encrypt the repository with a passphrase? [Y/n]"
  private static let question = "Create a repository without encryption? [y/N]"

  @Test(arguments: ["y", "YES", " yes "])
  func yesCreatesTheRepository(_ answer: String) throws {
    let outcome = try terminal("init repo", typing: "n\n" + answer + "\n")
    #expect(outcome.code == 0, "\(outcome.output)")
    #expect(outcome.output.contains("anyone who can read 'repo' will be able to read all data"))
    #expect(outcome.output.contains(Self.encrypt))
    #expect(outcome.output.contains(Self.question))
    #expect(outcome.output.contains("in ./repo, not encrypted"))
    #expect(try cli.snapshots() == [])
    #expect(try cli.isThere("home/.config/sandboxctl/config.yaml"))
  }

  @Test(arguments: ["no\n\n", "n\nn\n", "n\nyesterday\n", "\u{4}"])
  func anyOtherAnswerCreatesNothing(_ answer: String) throws {
    let outcome = try terminal("init repo", typing: answer)
    #expect(outcome.code == 1, "\(outcome.output)")
    #expect(outcome.output.contains(Self.encrypt))
    #expect(outcome.output.contains("the repository 'repo' was not created"))
    #expect(try !cli.isThere("repo") && !cli.isThere("home/.config"))
  }

  @Test func optionReplacesTheQuestion() throws {
    let outcome = try terminal("init repo --plain", typing: "")
    #expect(outcome.code == 0 && !outcome.output.contains("[y/N]"), "\(outcome.output)")
  }

  /// No new directory gets a name that scp or a shell would read differently. One that exists is
  /// used, and `./` names one in any case.
  @Test func slipsCreateNoDirectory() throws {
    for (text, advice) in [
      ("~/backup", "'./~/backup'"), ("~", "'./~'"), ("nas:backup/a", "'sftp:nas/~/backup/a'"),
      ("nas:/backup", "'sftp:nas/backup'"),
    ] {
      let outcome = try cli.run(["init", text, "--plain", "--no-default"])
      #expect(outcome.code == 2 && outcome.errors.contains(advice), "\(text): \(outcome.errors)")
    }
    #expect(try !cli.isThere("~") && !cli.isThere("nas:backup") && !cli.isThere("nas:"))
    _ = try Directory.make(path: cli.directory.path("nas:there"))
    for text in ["nas:there", "./nas:new", "./~/new", "C:x", "a-b"] {
      let outcome = try cli.run(["init", text, "--plain", "--no-default"])
      #expect(outcome.code == 0, "\(text): \(outcome.errors)")
    }
  }

  /// Without a terminal, or with output for a program, the error names the option.
  @Test func withoutATerminalTheErrorNamesTheOption() throws {
    for outcome in [
      try cli.run(["init", "repo"], input: Array("y\n".utf8)),
      try terminal("init repo --quiet", typing: "y\n"),
      try terminal("init repo --json", typing: "y\n"),
    ] {
      let said = outcome.output + outcome.errors
      #expect(outcome.code == 2 && said.contains("--plain") && !said.contains("[y/N]"), "\(said)")
    }
    #expect(try !cli.isThere("repo"))
  }
}
