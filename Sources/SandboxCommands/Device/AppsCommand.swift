internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl apps`: lists the apps of a device.
struct AppsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "apps",
      abstract: "List a device's apps and their containers",
      usage: "sandboxctl apps [--root <dir>] [<options>]",
      discussion: """
        Lists each app with its version, containers and groups, the apps that share each group, \
        and containers without an app. Membership in a group is known from entitlements or a \
        policy, or guessed. Without --all, 20 rows of each list are shown, installed apps first. \
        --findings also lists irregularities of the device, by kind.

        \(Examples.text([
          "sandboxctl apps --root device", "sandboxctl apps --root device --json",
        ]))
        """)
  }

  @OptionGroup var device: DeviceOptions

  @OptionGroup var policy: PolicyChoice

  @Flag(
    help: "List irregularities of the device, such as unreadable directories.")
  var findings = false

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    for (number, choice) in try device.choices().enumerated() {
      let found = try choice.find()
      if number > 0, !output.json { try console.result("") }
      console.warn(ofInterruptedOn: found)
      try show(found.stating(groupsOf: try policy.compile(for: found.layout)), console)
    }
    return .done
  }

  private func show(_ device: Device, _ console: Console) throws {
    if output.json {
      try console.result(device.json)
    } else {
      try AppsText(device, listsAll: list.all).write(console)
    }
    let warnings = device.findings.filter { $0.severity == .warning }
    if findings {
      if !output.json { try FindingsText(device.findings, listsAll: list.all).write(console) }
    } else if !output.quiet, !warnings.isEmpty {
      console.note(
        "\(Sizes.count(warnings.count, "irregularity")) of this device: see 'apps --findings'")
    }
  }
}
