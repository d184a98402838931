import BuiltinPolicies
import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A command on a device that is killed again and again: after the recovery the device is as before the
/// command or as after it, in every entry.
///
/// The moments are drawn from the calls that change something, as one whole run makes them, and spread
/// over its four phases. What a kill between two of them leaves is what one at the later of them finds,
/// so nothing is left out; a timer's moments would lie where the machine's speed puts them, most of them
/// in the program's start.
struct KillLoop {
  /// How far a command had come when it was killed.
  enum Phase: CaseIterable {
    /// The journal says nothing of it.
    case unheard
    /// The journal says that it is being prepared.
    case preparing
    /// The journal has its steps.
    case moving
    /// The journal is gone again.
    case ended

    /// How many of twenty kills are in it.
    var share: Int {
      switch self {
      case .unheard, .ended: 3
      case .preparing: 6
      case .moving: 8
      }
    }
  }

  static let kills = ProcessInfo.processInfo.environment["SANDBOXCTL_STRESS"] != nil ? 200 : 20

  let before: DeviceContent
  let after: DeviceContent
  private let rig: KillFixture
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

  /// Runs the command once as a whole, on the device as it is now.
  init(_ rig: KillFixture, _ command: String) throws {
    (self.rig, self.command, copy) = (rig, command, "untouched")
    try rig.copy(to: copy)
    before = try DeviceContent(rig.cli.directory)
    let tracer = try Strace(recording: Self.changing)
    let outcome = try rig.cli.run(command, under: tracer.command)
    try #require(outcome.code == 0, "\(outcome.errors)")
    after = try DeviceContent(rig.cli.directory)
    calls = try tracer.recorded()
    ranges = try Self.phases(calls)
    #expect(before != after)
  }

  /// The calls at which a kill is in each phase.
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

  /// Kills it so often, and looks at the device after each recovery; with `backingUp` a backup is made once
  /// of what was interrupted.
  func run(backingUp backsUp: Bool = false, _ label: String = #function) throws {
    var random = Seeded.fresh(label)
    var found = Tally(wantsBackup: backsUp)
    for phase in Phase.allCases {
      let wanted = Self.kills * phase.share / 20
      var (kills, tries) = (0, 0)
      // Of threads each makes another share of the calls in each run, so that one may not come.
      while kills < wanted, tries < 10 * wanted {
        tries += 1
        let call = try call(in: phase, number: kills, of: wanted, &random)
        if try examine(call, &found) { kills += 1 }
      }
    }
    print("\(label): \(found)")
    #expect(found.kills.values.reduce(0, +) >= Self.kills, "\(found)")
    for phase in Phase.allCases { #expect(found.kills[phase] ?? 0 > 0, "none is \(phase)") }
  }

  /// The call for one of the kills in a phase: they are spread over it, and while things get their places
  /// every other is at a rename.
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

  /// What came of the kills.
  private struct Tally: CustomStringConvertible {
    var kills: [Phase: Int] = [:]
    var recoveries = 0
    var wantsBackup: Bool

    var description: String {
      Phase.allCases.map { "\(kills[$0] ?? 0) kills \($0)" }.joined(separator: ", ")
    }
  }

  /// Kills the command at a call and holds the device against before and after; whether it was killed.
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
    let found = try DeviceContent(rig.cli.directory)
    let differences = found.differences(from: wanted)
    #expect(differences.isEmpty, "\(what)")
  }

  /// Runs the command on the device of before; whether it was killed.
  private func kill(at call: Strace.Call) throws -> Bool {
    try rig.reset(from: copy)
    let tracer = try Strace(call.name, killingAt: call.number)
    let outcome = try rig.cli.run(command, under: tracer.command)
    withExtendedLifetime(tracer) {}
    #expect([0, 137, -9].contains(outcome.code), "\(outcome.code): \(outcome.errors)")
    return outcome.code != 0
  }

  private func interrupted() throws -> [InterruptedOperation] {
    try InterruptedOperation.all(on: rig.cli.directory.path("device"))
  }

  private func phaseNow() throws -> Phase {
    if let isMoving = try interrupted().first?.canBeFinished {
      return isMoving ? .moving : .preparing
    }
    return try DeviceContent(rig.cli.directory) == before ? .unheard : .ended
  }

  private func recover(byProgram: Bool) throws {
    if byProgram {
      _ = try rig.cli.succeed("recover --root device --quiet")
    } else {
      let recovery = Recovery(try rig.device(), policy: try Self.policy.get(), isForced: true)
      for operation in try recovery.run().done { #expect(operation.failed.isEmpty) }
    }
  }

  /// A backup stores what is there, and says that it is in the middle of something.
  private func backUp(_ what: String) throws {
    let backup = try rig.cli.run("backup --root device --repo repo --quiet")
    #expect(backup.code == 3 && backup.errors.contains("was interrupted"), "\(what)")
  }
}
