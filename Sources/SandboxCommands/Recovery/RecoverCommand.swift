internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
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

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    var isWhole = true
    var blocked: [RecoveryReport.Blocked] = []
    for choice in try device.choices() {
      let found = try choice.find()
      let compiled = try policy.compileOrBuiltin(for: found.layout, console)
      let report = try Recovery(
        found.stating(groupsOf: compiled), policy: compiled, isForced: force
      ).run()
      isWhole = isWhole && report.done.allSatisfy(\.failed.isEmpty)
      blocked += report.blocked
      try show(report, of: found, console)
    }
    // The first failure is thrown, after warnings about the others.
    for left in blocked.dropFirst() { console.warning(left.error.description) }
    if let first = blocked.first { throw first.error }
    return isWhole ? .done : .doneInPart
  }

  private func show(_ report: RecoveryReport, of device: Device, _ console: Console) throws {
    if output.json {
      return try console.result(
        .object(
          JSON.path(device.root, named: "root")
            + [
              JSON.Member(
                "operations", .array(report.done.map(\.json) + report.blocked.map(\.json)))
            ]))
    }
    for operation in report.done { try operation.show { try console.result($0) } }
    console.remarks(
      report.done.flatMap(\.failed), as: .warning("not restored: "), all: list.all)
    if report.done.isEmpty, report.blocked.isEmpty, !output.quiet {
      try console.result("no interrupted operations on \(Paths.text(device.root))")
    }
  }
}
