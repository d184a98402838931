internal import ArgumentParser
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The goal of a purge.
struct PurgeGoalOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The space to free on each volume, for example 500M or 2GiB.", valueName: "size"))
  var free: ByteSize?

  @Option(
    help: ArgumentHelp(
      "Purge until this percentage of the volume is free, 1 to 99.", valueName: "percent"))
  var untilFree: Int?

  @Option(
    help: ArgumentHelp(
      "The pressure level to purge at: low, medium or critical (default: medium with "
        + "--free or --until-free, otherwise the current pressure of the volume).",
      valueName: "level"),
    completion: .list(Pressure.Level.allCases.map(\.rawValue)), transform: Self.level)
  var level: Pressure.Level?

  private static func level(_ word: String) throws -> Pressure.Level {
    guard let level = Pressure.Level(rawValue: word) else {
      throw ValidationError("there is no level '\(word)': choose low, medium or critical")
    }
    return level
  }

  /// The goal that the options give.
  var goal: PurgeRequest.Goal {
    get throws {
      if free != nil, untilFree != nil {
        throw UsageError(
          "'--free' and '--until-free' exclude each other", hint: "give one of them")
      }
      if let free {
        guard free.bytes > 0 else {
          throw UsageError("'--free' must be more than 0", hint: "give a size, for example 500M")
        }
        return .free(UInt64(free.bytes))
      }
      if let untilFree {
        guard (1...99).contains(untilFree) else {
          throw UsageError(
            "'\(untilFree)' is not a valid percentage", hint: "give a number from 1 to 99")
        }
        return .untilFree(percent: untilFree)
      }
      return level == nil ? .byPressure : .everything
    }
  }
}
