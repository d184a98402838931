import RemoteStorage
import SystemIO
import TestSupport
import Testing

@testable import SandboxCommands

/// The connection to the other repository of `copy` and `mirror`, and the options of suggested
/// commands.
struct TargetOptionsTests {
  private static let source = [
    "--s3-endpoint", "https://one", "--s3-region", "eu", "--s3-profile", "first", "--s3-path-style",
    "--ssh-command", "ssh -v", "--connections", "7", "--limit-upload", "1K",
  ]

  /// Returns a command with the options of the source and further words.
  private func command(_ words: [String] = []) throws -> CopyCommand {
    let program = KnownCommand(SandboxctlCommand.self)
    return try #require(
      program.parse(["copy", "--to", "x"] + Self.source + words) as? CopyCommand)
  }

  private func settings(_ words: String...) throws -> ConnectionSettings {
    let command = try command(words)
    return command.targetRemote.options(besides: command.repository.remote).settings
  }

  @Test func optionsOfTheSourceHoldForBoth() throws {
    let settings = try settings()
    #expect(try settings == command().repository.remote.settings)
    #expect(settings.s3Profile == "first" && settings.uploadRate == 1024)
  }

  /// A region or a profile of one store has no meaning for another one.
  @Test func optionsOfABucketBelongTogether() throws {
    var wanted = try settings()
    (wanted.s3Region, wanted.s3Profile, wanted.s3PathStyle) = (nil, nil, nil)
    wanted.s3Endpoint = "https://two"
    #expect(try settings("--to-s3-endpoint", "https://two") == wanted)
    (wanted.s3Endpoint, wanted.s3Profile) = (nil, "second")
    #expect(try settings("--to-s3-profile", "second") == wanted)
    (wanted.s3Profile, wanted.s3PathStyle) = (nil, true)
    #expect(try settings("--to-s3-path-style") == wanted)
    (wanted.s3Region, wanted.s3PathStyle) = ("us", nil)
    #expect(try settings("--to-s3-region", "us") == wanted)
  }

  @Test func theCommandOfAnSFTPServerIsSeparate() throws {
    var wanted = try settings()
    wanted.sshCommand = ["ssh", "-F", "other"]
    #expect(try settings("--to-ssh-command", "ssh -F other") == wanted)
  }

  private func words(
    _ options: [String], to location: String, from source: String
  ) throws -> [String] {
    let command = try command(options)
    return command.targetRemote.words(
      for: try RepositoryLocation(parsing: ByteString(location)),
      besides: command.repository.remote,
      of: try RepositoryLocation(parsing: ByteString(source)))
  }

  /// A suggested command includes the options of the source if its location needs them.
  @Test func suggestionsReachTheOtherSide() throws {
    let (bucket, ssh) = (["--to-s3-region", "us"], ["--to-ssh-command", "other"])
    #expect(try words(bucket + ssh, to: "s3://bucket", from: "s3://other") == bucket)
    #expect(try words(bucket + ssh, to: "sftp:host/x", from: "s3://other") == ssh)
    #expect(try words(bucket + ssh, to: "/x", from: "s3://other").isEmpty)
    #expect(try words([], to: "s3://bucket", from: "s3://other").isEmpty)
    #expect(
      try words([], to: "sftp:host/x", from: "s3://other") == ["--to-ssh-command", "ssh -v"])
    #expect(
      try words([], to: "s3://bucket", from: "/x") == [
        "--to-s3-endpoint", "https://one", "--to-s3-region", "eu", "--to-s3-profile", "first",
        "--to-s3-path-style",
      ])
  }

  /// A suggested command includes neither bandwidth limits, which are for the original command, nor
  /// a passphrase command, which may contain the passphrase.
  @Test func suggestionsIncludeTheOptionsThatOpenTheRepository() throws {
    func suffix(_ repo: ByteString, _ keys: String...) throws -> String {
      let command = try command(keys)
      return RepositoryOptions.suffix(
        for: repo, command.repository.remote, keys: command.repository.keys)
    }
    #expect(try suffix("/x y") == " --repo '/x y'")
    #expect(try suffix("sftp:host/x") == " --repo sftp:host/x --ssh-command 'ssh -v'")
    #expect(
      try suffix("s3://bucket/x") == " --repo s3://bucket/x --s3-endpoint https://one"
        + " --s3-region eu --s3-profile first --s3-path-style")
    #expect(try suffix("/x", "--passphrase-file", "a b") == " --repo /x --passphrase-file 'a b'")
    #expect(try suffix("/x", "--identity", "key") == " --repo /x --identity key")
    #expect(try suffix("/x", "--passphrase-command", "echo secret") == " --repo /x")
  }
}
