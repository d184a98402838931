internal import ArchiveStore
internal import ArgumentParser

/// A command of the program. It writes to a console and returns an exit status.
protocol SandboxCommand: ParsableCommand {
  /// The options that have another meaning than those of the same name in other commands. A
  /// configuration file sets them for this command only, not for all commands.
  static var ownOptions: Set<String> { get }

  /// The options that cannot be used together. If one is given, a configuration file does not add
  /// the others.
  static var precedence: [OptionPrecedence] { get }

  /// The options that have an effect only together with others.
  static var needs: [OptionNeed] { get }

  /// Returns the names, in `precedence`, of the choices made by arguments that are not options.
  static func choices(of arguments: [String]) -> Set<String>

  func run(_ console: Console) throws -> ExitStatus
}

extension SandboxCommand {
  static var ownOptions: Set<String> { [] }
  static var precedence: [OptionPrecedence] { [] }
  static var needs: [OptionNeed] { [] }
  static func choices(of arguments: [String]) -> Set<String> { [] }
}

/// The exit statuses of the program. Errors of an unknown type end with `failed`.
enum ExitStatus: Int32, Error {
  case done = 0
  case failed = 1
  case wrongUsage = 2
  /// Some of the selected data could not be read, restored or deleted.
  case doneInPart = 3
  case nothingToDo = 4
  /// A goal was not met: a purge freed too little, a policy has a mistake, an example failed.
  case goalNotMet = 5
  case noRepository = 10
  case busy = 11
  /// The passphrase or the key is missing or wrong.
  case wrongKey = 12
  case damaged = 13
  case interrupted = 130

  /// Returns the status of a run that skipped objects, given the status `skipped` for them: that
  /// status, unless an interruption or an unmet goal takes precedence.
  func after(skipping skipped: ExitStatus) -> ExitStatus {
    self == .done || self == .doneInPart ? .together([self, skipped]) : self
  }

  /// The status of a run that continued without the objects of these errors: `damaged`, or
  /// `doneInPart` if access was denied or the store failed to send them.
  init(without errors: some Sequence<StoreError>) {
    self = .together(
      errors.map { $0.isRefused || $0.isStoreFailure ? .doneInPart : .damaged })
  }

  /// Returns the status of a run with several parts: the worst of them; `nothingToDo` only if it
  /// applies to all.
  static func together(_ parts: [ExitStatus]) -> ExitStatus {
    let byWeight: [ExitStatus] = [
      .interrupted, .damaged, .failed, .busy, .wrongKey, .noRepository, .wrongUsage, .doneInPart,
      .goalNotMet, .done, .nothingToDo,
    ]
    return byWeight.first { parts.contains($0) } ?? .done
  }
}

extension StoreError {
  /// The word before a path whose data cannot be read for this reason. Data that only an older key
  /// opens is not damaged.
  var lossLabel: String { needsOlderKey ? "unreadable" : "damaged" }
}

/// The program's version.
enum Version {
  static let number = "0.1.0"
  static let text = "sandboxctl \(number) (repository format 1)"
}

/// The examples at the end of each help text.
enum Examples {
  private static let title = "EXAMPLES:"

  /// Returns the part of a discussion that shows examples. Lines have fewer than 76 columns, so
  /// that the parser does not wrap them.
  static func text(_ commands: [String]) -> String {
    "\(title)\n" + commands.map { "  $ " + $0 }.joined(separator: "\n")
  }

  /// Returns a help text with the examples moved to the end, where they are visible after printing.
  /// The parser puts the discussion before the options.
  static func atEnd(of help: String) -> String {
    var lines = help.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard let start = lines.firstIndex(of: title) else { return help }
    let end = lines[start...].firstIndex(of: "") ?? lines.endIndex
    let examples = lines[start..<end]
    lines.removeSubrange(start..<min(end + 1, lines.endIndex))
    while lines.last?.isEmpty == true { lines.removeLast() }
    return (lines + [""] + examples).joined(separator: "\n")
  }
}
