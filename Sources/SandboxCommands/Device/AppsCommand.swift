internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl apps`: what is on a device.
struct AppsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "apps",
      abstract: "List a device's apps and their containers",
      usage: "sandboxctl apps [--root <dir>] [<options>]",
      discussion: """
        Shows each app with its version and containers, the groups that apps share and whether that \
        is known, from entitlements or from a policy's groups, or guessed, and containers that \
        belong to no app: twenty of each, installed apps first, unless --all is given. With \
        --findings, what is odd about the device is listed, too, by kind.

        \(Examples.text([
          "sandboxctl apps --root device", "sandboxctl apps --root device --json",
        ]))
        """)
  }

  @OptionGroup var device: DeviceOptions

  @OptionGroup var policy: PolicyChoice

  @Flag(help: "Tell what is odd about the device: links followed, directories that cannot be read.")
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
        "\(Sizes.count(warnings.count, "thing")) odd about this device: see 'apps --findings'")
    }
  }
}
