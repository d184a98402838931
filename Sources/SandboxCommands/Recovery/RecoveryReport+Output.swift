internal import ArchiveStore
internal import Codecs
internal import DeviceTransaction
internal import SandboxModel
internal import SystemIO

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
  var json: JSON { operation.json("left", reason: error.description) }
}

extension RecoveryReport.Recovered {
  var json: JSON {
    operation.json(
      isFinished ? "finished" : "taken-back", reason: reason, steps: steps, failed: failed)
  }

  /// Prints the outcome.
  func show(_ write: (String) throws -> Void) rethrows {
    let what = "the interrupted \(operation.operation) of \(operation.container)"
    if isFinished {
      try write("finished \(what): \(Sizes.count(steps, "step")) remained")
    } else {
      let why = reason.map { "; it could not be finished: \($0)" } ?? ""
      try write("rolled back \(what)\(why)")
    }
    for container in operation.notBegun {
      try write("not started: \(container): repeat the command to change it")
    }
  }
}

extension Device {
  /// The options that select the device, for a suggested command.
  var selection: String {
    // The root alone may not identify these layouts, or may suggest another one first.
    let isNamed = [.folder, .android, .systemd, .xdg].contains(layout)
    return " --root \(ShellWord.text(root))" + (isNamed ? " --layout \(layout.rawValue)" : "")
  }
}

extension Console {
  /// Warns about interrupted operations on a device and prints how to recover them. Returns whether
  /// there are any.
  @discardableResult
  func warn(ofInterruptedOn device: Device) -> Bool {
    let report = RecoveryReport.pending(on: device)
    show(report, of: device, all: false)
    return report.isPending
  }

  /// Reports the recovery of a device before another operation. Blocked recoveries are reported by
  /// `showPending`, unless one of them refuses the operation.
  func show(_ report: RecoveryReport, of device: Device, all: Bool) {
    if let error = report.unreadable {
      warning(error.description)
      if let hint = error.hint { self.hint(hint) }
    }
    let command = "sandboxctl recover\(device.selection)"
    for operation in report.pending {
      warning(
        "the \(operation.operation) of '\(operation.container)' was interrupted "
          + "(\(Times.text(operation.time))): '\(command)' "
          + (operation.canBeFinished ? "finishes it" : "rolls it back"))
    }
    for operation in report.done {
      operation.show { note($0) }
      remarks(operation.failed, as: .warning("not restored: "), all: all)
    }
  }

  /// Reports blocked recoveries as pending.
  func showPending(_ report: RecoveryReport) {
    for left in report.blocked { note("still pending: \(left.error.description)") }
  }
}
