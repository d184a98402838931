internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import DeviceScan
internal import DeviceTransaction
internal import SandboxModel
internal import SystemIO

/// `sandboxctl recover`: recovers interrupted operations on a device.
struct RecoverCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "recover",
      abstract: "Finish or roll back interrupted operations on a device",
      usage: "sandboxctl recover [--root <dir>] [<options>]",
      discussion: """
        An operation that was killed or interrupted by a power failure is finished if all its data \
        is present, and rolled back otherwise; the command prints which. Replaced files are in the \
        trash. Containers that the operation had not started are unchanged: repeat the original \
        command to change them.

        Commands that change a device do this first. An operation that cannot be recovered now, \
        because its app is running or its volume is full, is reported and remains pending; the \
        others are recovered.

        See sandboxctl-recover(1) for details and the exit statuses.

        \(Examples.text(["sandboxctl recover --root device"]))
        """)
  }

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyChoice

  @Flag(help: "Recover even if the app is running.")
  var force = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    var isWhole = true
    var blocked: [RecoveryReport.Blocked] = []
    for choice in try device.choices() {
      let found = try choice.find()
      let compiled = try policy.compile(for: found.layout)
      let report = try Recovery(
        found.stating(groupsOf: compiled), policy: compiled, isForced: force
      ).run()
      isWhole = isWhole && report.done.allSatisfy(\.failed.isEmpty)
      blocked += report.blocked
      try tell(report, of: found, console)
    }
    // The first failure is thrown, after warnings about the others.
    for left in blocked.dropFirst() { console.warning(left.error.description) }
    if let first = blocked.first { throw first.error }
    return isWhole ? .done : .doneInPart
  }

  private func tell(_ report: RecoveryReport, of device: Device, _ console: Console) throws {
    if output.json {
      return try console.result(
        .object(
          JSON.path(device.root, named: "root")
            + [
              JSON.Member(
                "operations", .array(report.done.map(\.json) + report.blocked.map(\.json)))
            ]))
    }
    for operation in report.done { try operation.tell { try console.result($0) } }
    for remark in report.done.flatMap(\.failed) {
      console.warning("not restored: \(remark.path): \(remark.remark)")
    }
    if report.done.isEmpty, report.blocked.isEmpty, !output.quiet {
      try console.result("no interrupted operations on \(Paths.text(device.root))")
    }
  }
}

extension InterruptedOperation {
  /// Returns the operation as JSON, with its outcome.
  fileprivate func json(
    _ outcome: String, reason: String?, steps: Int = 0, failed: [PathRemark] = []
  ) -> JSON {
    .object(
      [
        JSON.Member("id", .string(id)), JSON.Member("operation", .string(operation)),
        JSON.Member("time", .string(time.rfc3339)),
      ] + JSON.path(container, named: "container") + [
        JSON.Member("outcome", .string(outcome)),
        JSON.Member("reason", reason.map { .string($0) } ?? .null),
        JSON.Member("steps", .integer(Int64(steps))),
        JSON.Member("failed", .array(failed.map(\.json))),
        JSON.Member("not_begun", .array(notBegun.map { .object(JSON.path($0)) })),
      ])
  }
}

extension RecoveryReport.Blocked {
  fileprivate var json: JSON { operation.json("left", reason: error.description) }
}

extension RecoveryReport.Recovered {
  fileprivate var json: JSON {
    operation.json(
      isFinished ? "finished" : "taken-back", reason: reason, steps: steps, failed: failed)
  }

  /// Prints the outcome.
  func tell(_ say: (String) throws -> Void) rethrows {
    let what = "the interrupted \(operation.operation) of \(operation.container)"
    if isFinished {
      try say("finished \(what): \(Sizes.count(steps, "step")) remained")
    } else {
      let why = reason.map { "; it could not be finished: \($0)" } ?? ""
      try say("rolled back \(what)\(why)")
    }
    for container in operation.notBegun {
      try say("not started: \(container): repeat the command to change it")
    }
  }
}

extension Console {
  /// Warns about interrupted operations on a device and says how to recover them. Returns whether
  /// there are any.
  @discardableResult
  func warn(ofInterruptedOn device: Device) -> Bool {
    warn(
      of: Result { () throws(OperationError) in try InterruptedOperation.all(on: device.root) },
      on: device)
  }

  /// Warns about interrupted operations on a device, or that its journal cannot be read. Returns
  /// whether there are any.
  func warn(of interrupted: Result<[InterruptedOperation], OperationError>, on device: Device)
    -> Bool
  {
    let layout = device.layout == .folder ? " --layout folder" : ""
    let found: [InterruptedOperation]
    do throws(OperationError) {
      found = try interrupted.get()
    } catch {
      warning(error.description)
      return true
    }
    let command = "sandboxctl recover --root \(ShellWord.text(device.root))\(layout)"
    for operation in found {
      warning(
        "the \(operation.operation) of '\(operation.container)' was interrupted "
          + "(\(Times.text(operation.time))): '\(command)' "
          + (operation.canBeFinished ? "finishes it" : "rolls it back"))
    }
    return !found.isEmpty
  }

  /// Recovers interrupted operations on a device before another one begins, and reports them.
  func recover(_ recovery: Recovery) throws -> RecoveryReport {
    let report = try recovery.run()
    for operation in report.done {
      operation.tell { note($0) }
      for remark in operation.failed {
        warning("not restored: \(remark.path): \(remark.remark)")
      }
    }
    return report
  }

  /// Reports blocked recoveries as pending.
  ///
  /// - Throws: the first error that `refusal` returns for a recovery that blocks the new
  ///   operation.
  func pass(
    _ blocked: [RecoveryReport.Blocked], unless refusal: (RecoveryReport.Blocked) -> OperationError?
  ) throws {
    if let error = blocked.lazy.compactMap(refusal).first { throw error }
    for left in blocked { note("still pending: \(left.error.description)") }
  }
}
