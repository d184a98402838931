internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `purge --watch`: looks again and again whether space is short, and purges where it is.
///
/// A look asks the volumes for their free space alone; a device is scanned only when one is short of
/// it. Where a purge gained nothing the next ones are put off, longer and longer, up to an hour: the
/// caches are not there any more, and a scan costs. What goes wrong is told once, as long as it stays
/// the same, and ends nothing: a volume may go and come again, and a device may appear.
struct PurgeWatch {
  private let command: PurgeCommand
  private let console: Console
  /// Seconds between two looks.
  private let interval: Double
  private var places: [ByteString: Location] = [:]
  private var isFirst = true

  /// Seconds between two looks, unless the user says it, and the least that may be said.
  static let usualInterval = 60.0
  static let leastInterval = 30.0
  private static let longestPause = 3600.0

  /// What is known of a device from earlier looks.
  private struct Location {
    /// What was last told to be amiss.
    var trouble: String?
    /// Until when there is no purge, by the monotonic clock.
    var rest = 0.0
    /// How long the last rest was, in seconds.
    var pause = 0.0
  }

  init(_ command: PurgeCommand, _ console: Console) {
    self.command = command
    self.console = console
    interval = command.interval?.seconds ?? Self.usualInterval
  }

  /// Goes on until a signal ends it, which is its usual end.
  mutating func run() throws -> ExitStatus {
    try StopSignals.watch()
    repeat {
      try look()
      isFirst = false
      try console.flush()
    } while waits()
    return .done
  }

  /// Waits for the next look; SIGUSR1 brings it on, and ends all rests. False when it is to end.
  private mutating func waits() -> Bool {
    let end = Host.monotonicSeconds() + interval
    while !StopSignals.isStopping() {
      let left = end - Host.monotonicSeconds()
      if left <= 0 { return true }
      // A second at most: what another thread took of the signals is seen by the flag.
      switch StopSignals.wait(milliseconds: Int32(min(left, 1) * 1000) + 1) {
      case .stop: return false
      case .ask:
        for place in places.keys { places[place]?.rest = 0 }
        return true
      case .woken, .nothing: continue
      }
    }
    return false
  }

  private mutating func look() throws {
    var choices: [DeviceChoice] = []
    try guarding("") { watch in choices = try watch.command.device.choices() }
    for choice in choices where !StopSignals.isStopping() {
      try guarding(choice.root) { watch in try watch.look(at: choice) }
    }
  }

  /// Does something and tells what was amiss. What is wrong with the words of the command line or
  /// with the policy at the first look ends it: that is no matter of waiting.
  private mutating func guarding(
    _ place: ByteString, _ body: (inout PurgeWatch) throws -> Void
  ) throws {
    do {
      try body(&self)
      places[place, default: Location()].trouble = nil
    } catch {
      if StopSignals.isStopping() { return }
      if isFirst, error is UsageError || error is PolicyError { throw error }
      let failure = Failure(error)
      if places[place]?.trouble != failure.message { console.warning(failure.message) }
      places[place, default: Location()].trouble = failure.message
    }
  }

  private mutating func look(at choice: DeviceChoice) throws {
    let device = try choice.find()
    let policy = try command.policy.compile(
      for: device.layout, version: device.osVersion?.utf8)
    let goal = try command.goal.goal
    guard try goal.isUnmet(on: device, policy) else {
      places[choice.root, default: Location()].pause = 0
      return
    }
    if Host.monotonicSeconds() < places[choice.root]?.rest ?? 0 { return }
    let plan = try command.plan(device, policy)
    try tell(command.carryOut(plan), plan, choice.root)
  }

  /// Says in a line what a purge came to; of those that gained nothing only the first.
  private mutating func tell(
    _ report: PurgeReport, _ plan: PurgePlan, _ root: ByteString
  ) throws {
    let before = places[root]?.pause ?? 0
    let isIdle = report.freed == 0
    let pause = isIdle ? min(max(before * 2, interval), Self.longestPause) : 0
    places[root, default: Location()].pause = pause
    places[root, default: Location()].rest = Host.monotonicSeconds() + pause
    if isIdle, before > 0 { return }
    let time = Host.now()
    try console.result(
      command.output.json
        ? report.json(plan, at: time).compact : report.line(plan, at: time))
  }
}

extension PurgeReport {
  /// A line of the watch's.
  fileprivate func line(_ plan: PurgePlan, at time: Timestamp) -> String {
    var parts = zip(volumes, plan.volumes).filter { $1.term != nil }.map { volume, _ in
      let after = volume.after.map { ", \(Sizes.text($0)) free" } ?? ""
      let missing = volume.missing > 0 ? ", \(Sizes.text(volume.missing)) missing" : ""
      return "\(Paths.volume(of: volume.path)): freed \(Sizes.text(volume.freed)) in "
        + "\(Sizes.count(volume.files, "file"))\(after)\(missing)"
    }
    let running = Set((running + plan.runningParties).map(\.path)).count
    if running > 0 { parts.append("\(Sizes.count(running, "app")) left alone, in use") }
    if !failed.isEmpty { parts.append("\(Sizes.count(failed.count, "unit")) not deleted") }
    return "\(Timestamp(seconds: time.seconds).rfc3339) \(parts.joined(separator: "; "))"
  }
}
