internal import ArgumentParser
internal import SystemIO

extension BackupCommand {
  /// A condition for a backup.
  enum Condition: String, CaseIterable, ExpressibleByArgument {
    /// The machine has mains power.
    case onMains = "on-ac"
    /// The network is not metered.
    case unmetered
    /// The load is low and no session is in use.
    case idle
  }

  /// A value of `--when`: conditions separated by commas, all of which must hold.
  struct ConditionList: ExpressibleByArgument {
    let conditions: [Condition]

    /// Nil if a condition is unknown or if there is none.
    init?(argument: String) {
      var conditions: [Condition] = []
      for word in argument.split(separator: ",", omittingEmptySubsequences: false) {
        guard let condition = Condition(rawValue: String(word)) else { return nil }
        conditions.append(condition)
      }
      self.conditions = conditions
    }

    static var allValueStrings: [String] { Condition.allCases.map(\.rawValue) }
  }

  /// The conditions for a backup (docs/power.md). A condition that the machine does not report
  /// counts as met: a backup that never runs loses more than one that runs at a bad time.
  struct Conditions: ParsableArguments {
    @Option(
      name: .customLong("when"),
      help: ArgumentHelp(
        "Skip the backup (exit status 0) unless these conditions hold, separated by commas: "
          + "on-ac, the machine has mains power; unmetered, the network is not metered; idle, the "
          + "load is low and no session is in use; may be repeated.", valueName: "states"),
      completion: .list(Condition.allCases.map(\.rawValue)))
    var when: [ConditionList] = []

    @Option(
      help: ArgumentHelp(
        "Skip the backup (exit status 0) if the load average of the last minute is above this "
          + "number.", valueName: "number"))
    var maxLoad: Double?

    /// The load of each processor below which a machine is idle.
    static let idleLoad = 0.25

    /// Refuses a load that no machine can have.
    func validate() throws {
      if let maxLoad, !(maxLoad >= 0 && maxLoad.isFinite) {
        throw ValidationError("'--max-load' must be a number of at least 0.")
      }
    }

    /// Returns the first condition that does not hold, as a sentence; nil if all hold.
    func obstacle(on machine: MachineState = MachineState()) -> String? {
      for condition in when.all {
        if let obstacle = Self.obstacle(condition, on: machine) { return obstacle }
      }
      return maxLoad.flatMap { Self.obstacle(above: $0, on: machine) }
    }

    /// Returns the reason why the load is too high, as a sentence; nil if it is not, or unknown.
    static func obstacle(above maxLoad: Double, on machine: MachineState) -> String? {
      guard let load = machine.load, load > maxLoad else { return nil }
      return "the load is \(load), above \(maxLoad)"
    }

    /// Returns the reason why a condition does not hold, as a sentence; nil if it holds.
    static func obstacle(_ condition: Condition, on machine: MachineState) -> String? {
      switch condition {
      case .onMains: return machine.isOnMainsPower ? nil : "the machine is on battery power"
      case .unmetered: return machine.isMetered == true ? "the network is metered" : nil
      case .idle:
        if machine.areSessionsIdle == false { return "a session is in use" }
        return obstacle(above: idleLoad * Double(Host.processors), on: machine)
      }
    }
  }
}

extension [BackupCommand.ConditionList] {
  /// The conditions of all values, each once, in the order in which they were given.
  var all: [BackupCommand.Condition] {
    var seen: Set<BackupCommand.Condition> = []
    return flatMap(\.conditions).filter { seen.insert($0).inserted }
  }
}
