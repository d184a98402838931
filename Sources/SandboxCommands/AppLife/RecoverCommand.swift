internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// `sandboxctl recover`: makes good what was interrupted on a device.
struct RecoverCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "recover",
      abstract: "Finish or take back what was interrupted on a device",
      usage: "sandboxctl recover [--root <dir>] [<options>]",
      discussion: """
        An operation that changes a device notes in the device's journal what it is about to do. \
        When it is killed, or the machine fails, this command finishes the container that it had in \
        hand, if all that was to come lies there whole, and else takes it back by removing what was \
        prepared; it says which. What becomes of an app as a whole (install, update, rollback, \
        offload, reinstall, uninstall) it takes back, too, where something stands in the way of \
        finishing it, and says why. What gave way is in the trash. Containers that the operation had \
        not begun with are as they were: the same command again does the rest.

        Commands that change a device do this first by themselves; those on other apps than one whose \
        operation cannot be made good now say so and go on. Those that only read change nothing, and \
        say that something was interrupted.

        What cannot be made good now, as its app runs, or its volume is full, is named and waits; the \
        rest is made good all the same. Exit status 1 says so, and 11 where another operation on that \
        app is going on; 3 names what could not get its place, and is as it was.

        \(Examples.text(["sandboxctl recover --root device"]))
        """)
  }

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyChoice

  @Flag(help: "Finish though the app runs.")
  var force = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    var isWhole = true
    var blocked: [BlockedRecovery] = []
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
    // A failure comes last: the others before it.
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
      try console.result("nothing was interrupted on \(Paths.text(device.root))")
    }
  }
}

extension InterruptedOperation {
  /// What is said of it in JSON, with what became of it.
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

extension BlockedRecovery {
  fileprivate var json: JSON { operation.json("left", reason: error.description) }
}

extension RecoveredOperation {
  fileprivate var json: JSON {
    operation.json(
      isFinished ? "finished" : "taken-back", reason: reason, steps: steps, failed: failed)
  }

  /// Says what became of it.
  func tell(_ say: (String) throws -> Void) rethrows {
    let what = "the interrupted \(operation.operation) of \(operation.container)"
    if isFinished {
      try say("finished \(what): \(Sizes.count(steps, "step")) of it were left")
    } else {
      let why = reason.map { "; it could not be finished: \($0)" } ?? ""
      try say("took back \(what): it is as it was\(why)")
    }
    for container in operation.notBegun {
      try say("not begun: \(container): the same command again does it")
    }
  }
}

extension Console {
  /// Says what was interrupted on a device, with what makes it good; tells whether something was.
  @discardableResult
  func warn(ofInterruptedOn device: Device) -> Bool {
    let root = device.root
    let layout = device.layout == .folder ? " --layout folder" : ""
    let found: [InterruptedOperation]
    do throws(LifecycleError) {
      found = try InterruptedOperation.all(on: root)
    } catch {
      warning(error.description)
      return true
    }
    let command = "sandboxctl recover --root \(ShellWord.text(root))\(layout)"
    for operation in found {
      warning(
        "the \(operation.operation) of '\(operation.container)' was interrupted "
          + "(\(Times.text(operation.time))): '\(command)' "
          + (operation.canBeFinished ? "finishes it" : "takes it back"))
    }
    return !found.isEmpty
  }

  /// Makes good what was interrupted on a device before something else is done there, and says so.
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

  /// Refuses what cannot be done before what is hindered was made good; else says that it waits.
  func pass(
    _ blocked: [BlockedRecovery], unless refusal: (BlockedRecovery) -> LifecycleError?
  ) throws {
    if let error = blocked.lazy.compactMap(refusal).first { throw error }
    for left in blocked { note("left for later: \(left.error.description)") }
  }
}
