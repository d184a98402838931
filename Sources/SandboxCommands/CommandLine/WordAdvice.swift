internal import PolicyEngine

/// The advice for a word that is neither a command nor an option: this program's word for one of
/// restic or borg, or a similar one.
enum WordAdvice {
  /// Returns the advice for an unknown command, or nil if there is none.
  ///
  /// - Parameter words: The words up to the unknown one, without the program's name.
  static func forCommand(_ words: [String], among known: [String]) -> String? {
    guard let word = words.last else { return nil }
    if let advice = commands[words.joined(separator: " ")] { return advice }
    let nearest = Resemblance.nearest(to: word, among: known).map { "did you mean '\($0)'?" }
    return nearest ?? (words.first == "snapshots" ? repository : nil)
  }

  /// The commands of restic and borg that have another name here.
  private static let commands = [
    "break-lock": lock, "unlock": lock,
    "cat": "'sandboxctl snapshots show' shows a snapshot, 'sandboxctl dump' writes a stored file;",
    "compact": "'sandboxctl prune' removes data that no snapshot needs;",
    "create": "'sandboxctl backup' makes a snapshot;",
    "delete": "'sandboxctl forget' removes snapshots;",
    "export-tar": "'sandboxctl export tar' writes a snapshot as an archive;",
    "extract": "'sandboxctl restore' restores a snapshot or part of it;",
    "key change-passphrase": passphrase, "key passwd": passphrase,
    "info": "'sandboxctl snapshots show' shows a snapshot, 'sandboxctl stats' the sizes;",
    "list": "'sandboxctl snapshots' lists snapshots, 'sandboxctl ls' the contents of one;",
    "rebuild-index": "'sandboxctl repair index' rebuilds the index;",
    "tag": "'sandboxctl backup --tag' sets the tags of a snapshot when it is made;",
    "umount": "'fusermount3 -u DIR' unmounts snapshots;",
    "version": "'sandboxctl --version' shows the version;",
  ]

  private static let passphrase = "'sandboxctl key change' changes a passphrase;"
  private static let repository = "'--repo REPO' names the repository;"
  private static let lock =
    "no lock has to be removed by hand; 'sandboxctl leases' lists the programs that use a "
    + "repository;"

  /// Returns the advice for a message of the argument parser, or nil if there is none.
  ///
  /// - Parameter path: The commands of the command line, from the outermost, below the program.
  static func forMessage(
    _ message: String, of path: [KnownCommand], in program: KnownCommand
  ) -> String? {
    let name = path.map(\.name).joined(separator: " ")
    if let option = quoted(message, after: "Unknown option '") {
      return differing[name]?[option] ?? (name == "schedule install" ? ofJob(option, program) : nil)
        ?? forOption(option, of: path.last ?? program)
    }
    if let advice = forValue(message) { return advice }
    guard message.hasPrefix("Unexpected argument '") || message.contains(" unexpected arguments: ")
    else { return nil }
    switch name {
    case "backup":
      return "'--root DIR' backs up a device, and with '--layout folder' any directory;"
    case "restore": return "'--to DIR' restores to a directory;"
    case "check", "key list", "leases", "mirror", "prune", "repair index", "repair packs":
      return repository
    default: return nil
    }
  }

  /// Returns the advice for an option of the scheduled command among those of the schedule, or nil
  /// if it is not one.
  private static func ofJob(_ option: String, _ program: KnownCommand) -> String? {
    let isKnown = ["backup", "purge"].contains { program[$0]?.takes(option) == true }
    return isKnown ? "options of the backup or purge follow '--': '-- \(option) …';" : nil
  }

  /// Returns the form of a value that the parser refused without a reason.
  private static func forValue(_ message: String) -> String? {
    let form = /The value '[\s\S]*' is invalid for '(\S+) <(\S+)>'/
    guard let parts = message.wholeMatch(of: form)?.output else { return nil }
    return values[String(parts.1)] ?? values[String(parts.2)]
  }

  /// The forms of values by the option, or by the name of the value in the help.
  private static let values = [
    "--group-by": "give 'device', 'host', 'scope' or 'tags', several with commas, or '' for one;",
    "--keep-last": number, "--keep-hourly": number, "--keep-daily": number,
    "--keep-weekly": number, "--keep-monthly": number, "--keep-yearly": number,
    "--max-unused": "give a size such as 500M, a share such as 5%, or 'unlimited';",
    "--time": "give 'source', 'now', or a time such as 2024-01-31T10:30:00Z;",
    "percent": "give a number from 1 to 99, without a percent sign;",
    "rate": "give bytes per second, such as 500K or 2M;",
    "size": "give a size such as 500M or 2GiB;",
    "span": "give a span of time such as 2y5m7d3h;",
    "time": "give a span of time such as 45s, 10m, 12h or 7d;",
  ]

  private static let number = "give a number of snapshots, or 'unlimited';"

  private static func quoted(_ message: String, after start: String) -> String? {
    guard message.hasPrefix(start) else { return nil }
    return String(message.dropFirst(start.count).prefix { $0 != "'" })
  }

  private static func forOption(_ option: String, of command: KnownCommand) -> String? {
    guard command.commands.isEmpty else {
      let known = command.commands.contains { $0.takes(option) }
      return known ? "give '\(option)' after the name of the command;" : nil
    }
    let known = command.options.filter(\.isShown).map(\.name)
    let name = String(options[option] ?? option).drop { $0 == "-" }
    if known.contains(String(name)) { return "did you mean '--\(name)'?" }
    guard option.hasPrefix("--") else { return nil }
    let longer = known.filter { $0.hasPrefix(name) }.prefix(maximumCount)
    if let first = longer.first {
      let all = longer.map { "'--\($0)'" }.joined(separator: ", ")
      return longer.count == 1 ? "did you mean '--\(first)'?" : "did you mean one of \(all)?"
    }
    // For a short word, one of another length is too different: 'to' for 'root'.
    let similar = known.filter { name.count > 5 || abs($0.utf8.count - name.utf8.count) < 2 }
    return Resemblance.nearest(to: String(name), among: similar).map { "did you mean '--\($0)'?" }
  }

  /// The maximum number of options to name.
  private static let maximumCount = 3

  /// The options of restic and borg that have another name here.
  private static let options = [
    "-e": "exclude", "-n": "dry-run", "-r": "repo", "-p": "passphrase-file", "-t": "to",
    "--password-command": "passphrase-command", "--password-file": "passphrase-file",
    "--target": "to",
  ]

  private static let part = "'SNAP:PATH' restores a part of a snapshot, '--app' an app of it;"

  /// The options that a command does not have because it uses other arguments for the same purpose.
  private static let differing = [
    "backup": [
      "--exclude-caches": "the policy excludes caches: 'sandboxctl explain PATH' shows the rule;",
      "--exclude-file": "'exclude:' in the configuration file has a list of patterns;",
      "--host": "a snapshot has the name of this machine; '--tag' adds a word of your own;",
      "--one-file-system": "mounted file systems are included only with '--cross-mounts';",
      "-x": "mounted file systems are included only with '--cross-mounts';",
    ],
    "export": ["--all": "'sandboxctl export all DIR' writes all snapshots;"],
    "init": [
      "--repo": "the repository is an argument: 'sandboxctl init REPO';",
      "-r": "the repository is an argument: 'sandboxctl init REPO';",
    ],
    "restore": [
      "--exclude": part, "--include": part, "-i": part,
      "--verify": "all data is verified while it is restored;",
      "--root": "'--to-device ROOT' restores to a device, '--in-place' to that of the snapshot;",
      "--device": "'--to-device ROOT' restores to a device, '--in-place' to that of the snapshot;",
    ],
  ]
}

extension KnownCommand {
  /// Whether this command, or one below it, has an option with this spelling.
  fileprivate func takes(_ option: String) -> Bool {
    let name = String(option.drop { $0 == "-" })
    return all.contains { command in
      command.options.contains { known in
        option.hasPrefix("--") ? known.name == name : known.letters.map(String.init) == [name]
      }
    }
  }
}
