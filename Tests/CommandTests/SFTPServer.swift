import Foundation
import SystemIO
import TestSupport
import Testing

/// OpenSSH's file server. The command of `--ssh-command` starts it without ssh, and ignores the
/// arguments that ssh would receive.
struct SFTPServer {
  /// The server of this host, or nil if none is installed.
  static let program = ["/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  static let isInstalled: ConditionTrait = .enabled(if: program != nil)

  /// The option with which a command reaches the server.
  let option: String
  private let place: String

  /// Writes the command, as `ssh` in the directory of a test.
  ///
  /// - Parameter options: the server's options, in the syntax of a shell.
  init(for cli: CommandLine, _ options: String = "-e") throws {
    place = cli.directory.string
    option = "--ssh-command \(place)/ssh"
    try cli.writeProgram("exec \(Self.program ?? "false") \(options)", at: "ssh")
  }

  /// The location of a repository in a directory of the test.
  func location(_ name: String = "store") -> String { "sftp:host\(place)/\(name)" }

  /// The options for a repository in a directory of the test.
  func repository(_ name: String = "store") -> String { "--repo \(location(name)) \(option)" }
}

extension CommandLine {
  /// Writes a shell script.
  func writeProgram(_ text: String, at path: ByteString) throws {
    try directory.write("#!/bin/sh\n\(text)\n", at: path)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(directory.path(path))")
  }
}
