import BuiltinPolicies
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// A command on a device that is killed repeatedly: after the recovery, every entry of the device
/// is as before or as after the command.
///
/// The kills are at calls that change something, as recorded in one complete run, spread over its
/// four phases. A kill between two such calls has the same result as one at the later call, so
/// every case is covered. The moments of a timer would depend on the speed of the machine, and most
/// would be in the program's start.
struct KillLoop {
  /// The progress of a command when it was killed.
  enum Phase: CaseIterable {
    /// The journal does not contain the operation.
    case unheard
    /// The journal says that the operation is being prepared.
    case preparing
    /// The journal contains the steps.
    case moving
    /// The journal has been removed.
    case ended

    /// The number of kills in this phase out of twenty.
    var share: Int {
      switch self {
      case .unheard, .ended: 3
      case .preparing: 6
      case .moving: 8
      }
    }
  }

  static let kills = Sampling.count(20, of: 200)

  let before: DeviceContent
  let after: DeviceContent
  private let fixture: KillFixture
  private let command: String
  private let copy: String
  private let calls: [Strace.Call]
  private let ranges: [Phase: Range<Int>]

  private static let changing =
    "renameat,renameat2,linkat,symlinkat,mkdirat,unlinkat,write,pwrite64,ftruncate,fchmod,fchown,"
    + "utimensat,fsetxattr,fsync,fdatasync,syncfs,exit_group"

  private static let policy = Result {
    try PolicyLibrary(
      BuiltinPolicies.files.map { PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin) }
    ).compile(PolicyRequest(layout: .coreSimulator))
  }

  /// Runs the command once completely on the current device.
  init(_ fixture: KillFixture, _ command: String) throws {
    (self.fixture, self.command, copy) = (fixture, command, "untouched")
    try fixture.copy(to: copy)
    before = try DeviceContent(fixture.cli.directory)
    let tracer = try Strace(recording: Self.changing)
    let outcome = try fixture.cli.run(command, under: tracer.command)
    try #require(outcome.code == 0, "\(outcome.errors)")
    after = try DeviceContent(fixture.cli.directory)
    calls = try tracer.recorded()
    ranges = try Self.phases(calls)
    #expect(before != after)
  }

  /// Returns the calls of each phase.
  private static func phases(_ calls: [Strace.Call]) throws -> [Phase: Range<Int>] {
    let writes = calls.indices.filter {
      calls[$0].name == "renameat" && calls[$0].arguments.hasSuffix(".json\"")
        && !calls[$0].arguments.contains("operation.json")
    }
    let end = calls.firstIndex { $0.name == "unlinkat" && $0.arguments.contains(".json\"") }
    try #require(writes.count == 2, "the journal is written twice")
    let removal = try #require(end)
    return [
      .unheard: 0..<writes[0] + 1, .preparing: writes[0] + 1..<writes[1] + 1,
      .moving: writes[1] + 1..<removal + 1, .ended: removal + 1..<calls.count,
    ]
  }

  /// Kills the command repeatedly and checks the device after each recovery. With `backingUp`,
  /// backs the interrupted state up once.
  func run(backingUp backsUp: Bool = false, _ label: String = #function) throws {
    var random = Seeded.fresh(label)
    var found = Tally(wantsBackup: backsUp)
    for phase in Phase.allCases {
      let wanted = Self.kills * phase.share / 20
      var (kills, tries) = (0, 0)
      // The calls are distributed over threads differently in each run, so that a call may not
      // occur. The next attempt is therefore in the next part of the phase, so that a part whose
      // calls do not occur on a slow machine does not use up all attempts.
      while kills < wanted, tries < 10 * wanted {
        let call = try call(in: phase, number: tries % wanted, of: wanted, &random)
        tries += 1
        if try examine(call, &found) { kills += 1 }
      }
    }
    print("\(label): \(found)")
    #expect(found.kills.values.reduce(0, +) >= Self.kills, "\(found)")
    for phase in Phase.allCases { #expect(found.kills[phase] ?? 0 > 0, "none is \(phase)") }
  }

  /// Returns the call of one kill in a phase. The calls are spread over the phase; while entries
  /// are moved into place, every other one is a rename.
  private func call(
    in phase: Phase, number: Int, of wanted: Int, _ random: inout Seeded
  ) throws -> Strace.Call {
    var choice = calls[try #require(ranges[phase])]
    if phase == .moving, number.isMultiple(of: 2) {
      choice = choice.filter { $0.name.hasPrefix("rename") }[...]
    }
    let part = (Double(number) + Double.random(in: 0..<1, using: &random)) / Double(wanted)
    return choice[choice.startIndex + Int(part * Double(choice.count))]
  }

  /// The results of the kills.
  private struct Tally: CustomStringConvertible {
    var kills: [Phase: Int] = [:]
    var recoveries = 0
    var wantsBackup: Bool

    var description: String {
      Phase.allCases.map { "\(kills[$0] ?? 0) kills \($0)" }.joined(separator: ", ")
    }
  }

  /// Kills the command at a call and compares the device with the states before and after. Returns
  /// whether it was killed.
  private func examine(_ call: Strace.Call, _ tally: inout Tally) throws -> Bool {
    let what = "killed at \(call.name) \(call.number)"
    guard try kill(at: call) else {
      try expect(after, what)
      return false
    }
    let phase = try phaseNow()
    tally.kills[phase, default: 0] += 1
    if phase == .moving, tally.wantsBackup {
      tally.wantsBackup = false
      try backUp(what)
    }
    if phase == .preparing || phase == .moving {
      try recover(byProgram: tally.recoveries.isMultiple(of: 10))
      tally.recoveries += 1
      #expect(try interrupted().isEmpty, "\(what)")
    }
    try expect(phase == .moving || phase == .ended ? after : before, what)
    return true
  }

  private func expect(_ wanted: DeviceContent, _ what: String) throws {
    let found = try DeviceContent(fixture.cli.directory)
    let differences = found.differences(from: wanted)
    #expect(differences.isEmpty, "\(what)")
  }

  /// Runs the command on the device in its earlier state. Returns whether it was killed.
  private func kill(at call: Strace.Call) throws -> Bool {
    try fixture.reset(from: copy)
    let tracer = try Strace(call.name, killingAt: call.number)
    let outcome = try fixture.cli.run(command, under: tracer.command)
    withExtendedLifetime(tracer) {}
    #expect([0, 137, -9].contains(outcome.code), "\(outcome.code): \(outcome.errors)")
    return outcome.code != 0
  }

  private func interrupted() throws -> [InterruptedOperation] {
    try InterruptedOperation.all(on: fixture.cli.directory.path("device"))
  }

  private func phaseNow() throws -> Phase {
    if let isMoving = try interrupted().first?.canBeFinished {
      return isMoving ? .moving : .preparing
    }
    return try DeviceContent(fixture.cli.directory) == before ? .unheard : .ended
  }

  private func recover(byProgram: Bool) throws {
    if byProgram {
      _ = try fixture.cli.succeed("recover --root device --quiet")
    } else {
      let recovery = Recovery(try fixture.device(), policy: try Self.policy.get(), isForced: true)
      for operation in try recovery.run().done { #expect(operation.failed.isEmpty) }
    }
  }

  /// Makes a backup, which stores the current state and reports the interruption.
  private func backUp(_ what: String) throws {
    let backup = try fixture.cli.run("backup --root device --repo repo --quiet")
    #expect(backup.code == 3 && backup.errors.contains("was interrupted"), "\(what)")
  }
}
