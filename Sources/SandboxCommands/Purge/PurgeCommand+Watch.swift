internal import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import Purge
internal import SandboxModel
internal import SystemIO

extension PurgeCommand {
  /// `purge --watch`: checks repeatedly whether space is short, and purges if it is.
  ///
  /// A check only reads the free space of the volumes; a device is scanned only if one of its
  /// volumes is short of space. After a purge that freed nothing, the next ones are deferred, for a
  /// longer time each, up to an hour: the caches are gone, and a scan is expensive. An error is
  /// reported once until it changes, and does not end the watch: a volume may be mounted again, and
  /// a device may appear.
  struct Watch {
    private let command: PurgeCommand
    private let console: Console
    /// The time between two checks, in seconds.
    private let interval: Double
    private var devices: [ByteString: DeviceState] = [:]
    private var isFirst = true

    /// The default and the minimum of the interval, in seconds.
    static let usualInterval = 60.0
    static let minimumInterval = 30.0
    private static let longestPause = 3600.0

    /// The state of a device from earlier checks.
    private struct DeviceState {
      /// The error that was reported last.
      var trouble: String?
      /// The time until which purges are deferred, on the monotonic clock.
      var rest = 0.0
      /// The duration of the last deferral, in seconds.
      var pause = 0.0
    }

    init(_ command: PurgeCommand, _ console: Console) {
      self.command = command
      self.console = console
      interval = command.interval?.seconds ?? Self.usualInterval
    }

    /// Runs until a signal ends it, which is the normal end.
    mutating func run() throws -> ExitStatus {
      try StopSignals.watch()
      repeat {
        try check()
        isFirst = false
        try console.flush()
      } while waits()
      return .done
    }

    /// Waits for the next check. SIGUSR1 starts it at once and ends all deferrals. Returns false if
    /// the watch is to end.
    private mutating func waits() -> Bool {
      let end = Host.monotonicSeconds() + interval
      while !StopSignals.isStopping() {
        let left = end - Host.monotonicSeconds()
        if left <= 0 { return true }
        // One wait until the next check: every handler writes to the pipe on which it waits, so no
        // wake-up is needed to see a signal (docs/power.md). At most a day, which fits in 32 bits.
        let milliseconds = Int32(min(left, 86_400) * 1000) + 1
        switch StopSignals.wait(milliseconds: milliseconds, tolerance: milliseconds / 10) {
        case .stop: return false
        case .ask:
          for root in devices.keys { devices[root]?.rest = 0 }
          return true
        case .woken, .nothing: continue
        }
      }
      return false
    }

    private mutating func check() throws {
      var choices: [DeviceOptions.Choice] = []
      try guarding("") { watch in choices = try watch.command.device.choices() }
      for choice in choices where !StopSignals.isStopping() {
        try guarding(choice.root) { watch in try watch.check(at: choice) }
      }
    }

    /// Runs `body` and reports its error. A usage or policy error at the first check ends the
    /// watch, since waiting does not correct it.
    private mutating func guarding(
      _ root: ByteString, _ body: (inout Watch) throws -> Void
    ) throws {
      do {
        try body(&self)
        devices[root, default: DeviceState()].trouble = nil
      } catch {
        if StopSignals.isStopping() { return }
        if isFirst, error is UsageError || error is PolicyError { throw error }
        let failure = Failure(error)
        if devices[root]?.trouble != failure.message { console.warning(failure.message) }
        devices[root, default: DeviceState()].trouble = failure.message
      }
    }

    private mutating func check(at choice: DeviceOptions.Choice) throws {
      let device = try choice.find()
      let policy = try command.policy.compile(
        for: device.layout, version: device.osVersion?.utf8)
      let goal = try command.goal.goal
      guard try goal.isUnmet(on: device, policy) else {
        devices[choice.root, default: DeviceState()].pause = 0
        return
      }
      if Host.monotonicSeconds() < devices[choice.root]?.rest ?? 0 { return }
      let plan = try command.plan(device, policy)
      try show(command.carryOut(plan), of: plan, at: choice.root)
    }

    /// Prints a line about a purge; of purges that freed nothing, only about the first.
    private mutating func show(
      _ report: PurgeReport, of plan: PurgePlan, at root: ByteString
    ) throws {
      let before = devices[root]?.pause ?? 0
      let isIdle = report.freed == 0
      let pause = isIdle ? min(max(before * 2, interval), Self.longestPause) : 0
      devices[root, default: DeviceState()].pause = pause
      devices[root, default: DeviceState()].rest = Host.monotonicSeconds() + pause
      if isIdle, before > 0 { return }
      let time = Host.now()
      let line =
        command.output.json ? report.json(plan, at: time).compact : report.line(plan, at: time)
      if let line { try console.result(line) }
    }
  }
}

extension PurgeReport {
  /// Returns the line that the watch prints; nil if nothing is to be said, because the device is
  /// disappearing.
  fileprivate func line(_ plan: PurgePlan, at time: Timestamp) -> String? {
    var parts = zip(volumes, plan.volumes).filter { $1.term != nil }.map { volume, _ in
      let after = volume.after.map { ", \(Sizes.text($0)) free" } ?? ""
      let missing = volume.missing > 0 ? ", \(Sizes.text(volume.missing)) missing" : ""
      return "\(Paths.volume(of: volume.path)): freed \(Sizes.text(volume.freed)) in "
        + "\(Sizes.count(volume.files, "file"))\(after)\(missing)"
    }
    let running = Set((running + plan.runningParties).map(\.path)).count
    if running > 0 { parts.append("\(Sizes.count(running, "app")) skipped, in use") }
    if !failed.isEmpty { parts.append("\(Sizes.count(failed.count, "unit")) not deleted") }
    if parts.isEmpty { return nil }
    return "\(Timestamp(seconds: time.seconds).rfc3339) \(parts.joined(separator: "; "))"
  }
}
