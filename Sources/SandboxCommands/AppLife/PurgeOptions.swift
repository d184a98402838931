internal import ArgumentParser
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// How much a purge is to gain.
struct PurgeGoalOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Gain so much on each volume, as 500M or 2GiB.", valueName: "size"))
  var free: ByteSize?

  @Option(
    help: ArgumentHelp(
      "Go on until so many hundredths of the volume are free, 1 to 99.", valueName: "percent"))
  var untilFree: Int?

  @Option(
    help: ArgumentHelp(
      "Take what this level lets go: low, medium or critical; all of it where no figure is given.",
      valueName: "level"),
    completion: .list(PressureLevel.allCases.map(\.rawValue)), transform: Self.level)
  var level: PressureLevel?

  private static func level(_ word: String) throws -> PressureLevel {
    guard let level = PressureLevel(rawValue: word) else {
      throw ValidationError("there is no level '\(word)': choose low, medium or critical")
    }
    return level
  }

  /// What is asked for.
  var goal: PurgeRequest.Goal {
    get throws {
      if free != nil, untilFree != nil {
        throw UsageError(
          "two goals are given", hint: "give '--free' or '--until-free', one of them")
      }
      if let free {
        guard free.bytes > 0 else {
          throw UsageError("'--free' of nothing", hint: "give how much is to be gained, as 500M")
        }
        return .free(UInt64(free.bytes))
      }
      if let untilFree {
        guard (1...99).contains(untilFree) else {
          throw UsageError(
            "'\(untilFree)' is no part of a volume", hint: "give hundredths, from 1 to 99")
        }
        return .untilFree(percent: untilFree)
      }
      return level == nil ? .byPressure : .everything
    }
  }
}
