import SystemIO
import TestSupport
import Testing

@testable import SandboxCommands

/// The hints for words of other programs, and for misspelled words.
struct WordAdviceTests {
  private func hint(_ line: String) throws -> String {
    let words = line.split(separator: " ").map(String.init)
    let program = KnownCommand(SandboxctlCommand.self)
    if let unknown = program.unknownCommand(in: words) { return unknown.hint ?? "" }
    let error = try #require(throws: UsageError.self) { try program.parse(words) }
    return error.hint ?? ""
  }

  /// The parser takes the value of an unknown option for an argument, and checks these first.
  @Test(arguments: ["export tar a b --bogus v", "copy a --bogus v", "copy a --bogus=v"])
  func unknownOptionsComeFirst(line: String) throws {
    let words = line.split(separator: " ").map(String.init)
    let error = try #require(throws: UsageError.self) {
      try KnownCommand(SandboxctlCommand.self).parse(words)
    }
    #expect("\(error)".contains("unknown option '--bogus'"), "\(error)")
  }

  @Test(arguments: [
    ("snapshots -r repo", "did you mean '--repo'?"),
    ("restore latest --target x", "did you mean '--to'?"),
    ("restore latest -t x", "did you mean '--to'?"),
    ("backup --password-file x", "did you mean '--passphrase-file'?"),
    ("backup --dry", "did you mean '--dry-run'?"),
    ("check --read", "did you mean one of '--read-data', '--read-data-subset'?"),
    ("snapshots --latest 1", "did you mean '--last'?"),
    ("backup --rooot x", "did you mean '--root'?"), ("apps --jso", "did you mean '--json'?"),
    ("restore latest --root device", "'--to-device ROOT' restores to a device"),
    ("init --repo x", "'sandboxctl init REPO'"),
    ("--repo x snapshots", "give '--repo' after the name of the command"),
    ("key --repo x", "give '--repo' after the name of the command"),
    ("backup device", "'--root DIR' backs up a device"),
    ("backup one two", "with '--layout folder' any directory"),
    ("restore latest out", "'--to DIR' restores to a directory"),
    ("export --all out", "'sandboxctl export all DIR' writes all snapshots"),
    ("unlock", "'sandboxctl leases'"), ("create", "'sandboxctl backup'"),
    ("extract", "'sandboxctl restore'"), ("list", "'sandboxctl snapshots'"),
    ("compact", "'sandboxctl prune'"), ("delete", "'sandboxctl forget'"),
    ("version", "'sandboxctl --version'"), ("bakcup", "did you mean 'backup'?"),
    ("policy Lint", "did you mean 'lint'?"), ("snapshots repo", "'--repo REPO' names the"),
    ("check repo", "'--repo REPO' names the"), ("prune repo", "'--repo REPO' names the"),
    ("snapshots lits", "did you mean 'list'?"), ("key passwd", "'sandboxctl key change'"),
    ("tag add x", "'sandboxctl backup --tag'"), ("cat snapshot 1", "'sandboxctl snapshots show'"),
    ("backup -n", "did you mean '--dry-run'?"), ("backup -x", "'--cross-mounts'"),
    ("backup --host x", "has the name of this machine"),
    ("backup --exclude-file x", "'exclude:' in the configuration file"),
    ("restore latest --include x", "'SNAP:PATH' restores a part"),
    ("restore latest --verify", "all data is verified"),
    ("schedule install --cron --repo x", "follow '--': '-- --repo …'"),
    ("schedule install --systemd --until-free 5", "follow '--': '-- --until-free …'"),
    ("trash empty --older-than x", "give a span of time such as 45s, 10m, 12h or 7d;"),
    ("import tar x --time x", "give 'source', 'now', or a time such as 2024-01-31T10:30:00Z;"),
    ("forget --keep-last x", "give a number of snapshots, or 'unlimited';"),
    ("forget --keep-within x", "give a span of time such as 2y5m7d3h;"),
    ("backup --exclude-larger-than x", "give a size such as 500M or 2GiB;"),
    ("backup --exclude-larger-than -5", "give a size such as 500M or 2GiB;"),
    ("forget --keep-last -1 --prune", "give a number of snapshots, or 'unlimited';"),
    ("backup --limit-upload x", "give bytes per second, such as 500K or 2M;"),
    ("forget --group-by paths", "give 'device', 'host', 'scope' or 'tags', several with commas"),
    ("purge --until-free 10%", "give a number from 1 to 99, without a percent sign;"),
    ("prune --max-unused x", "give a size such as 500M, a share such as 5%, or 'unlimited';"),
  ])
  func wordOfAnotherProgramHasAHint(_ line: String, expected: String) throws {
    let hint = try hint(line)
    #expect(hint.hasPrefix(expected) || hint.contains(expected), "\(line): \(hint)")
    #expect(hint.contains("--help'"), "\(line): \(hint)")
  }

  /// The parser mistakes a negative number for an option.
  @Test(arguments: [
    ("forget --keep-last -1", "the value '-1' is invalid for '--keep-last <n>'"),
    ("purge --free -5", "the value '-5' is invalid for '--free <size>'"),
    ("backup --jobs -1", "'-1' is read as an option, not as the value of '--jobs'"),
    ("backup --exclude-larger-than 0", "'--exclude-larger-than 0' would store no file"),
    ("backup --jobs --strict", "missing value for '--jobs <number>'"),
  ])
  func wrongNumberIsNotAMissingValue(_ line: String, expected: String) throws {
    let words = line.split(separator: " ").map(String.init)
    let error = try #require(throws: UsageError.self) {
      try KnownCommand(SandboxctlCommand.self).parse(words)
    }
    #expect(error.description.hasPrefix(expected), "\(error.description)")
  }

  /// No hint suggests a word that is much shorter, or that belongs to another command.
  @Test(arguments: [
    "ls latest --root device", "forget --nosuch 3", "snapshots --device x",
    "scenario init --repo x", "policy list here",
  ])
  func otherWordHasNoHint(_ line: String) throws {
    let hint = try hint(line)
    #expect(hint.hasPrefix("see 'sandboxctl "), "\(hint)")
    #expect(hint.contains("see 'sandboxctl ") && hint.hasSuffix("--help'"), "\(hint)")
  }
}
