internal import ArgumentParser
internal import Codecs
internal import SandboxModel
internal import Scenario
internal import ScenarioRunner
internal import SystemIO

/// `sandboxctl scenario init --root DIR`: writes a first scenario for a device.
struct ScenarioInitCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "init",
      abstract: "Write a first scenario for a device",
      usage: "sandboxctl scenario init --root <dir> [--to <file>] [<options>]",
      discussion: """
        The scenario expects that an update of each installed app, a purge and a restore to a new \
        device keep the data that the platform promises to keep. It is derived from the files on \
        the device and the built-in policy, and names the device's directory. Edit it to say what \
        your app needs.

        \(Examples.text([
          "sandboxctl scenario init --root device --to device.scenario.yaml",
          "sandboxctl scenario run device.scenario.yaml",
        ]))
        """)
  }

  @Option(
    name: .customLong("to"),
    help: ArgumentHelp(
      "The file to write, which must not exist (default: standard output).", valueName: "file"),
    completion: .file())
  var file: ByteString?

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  static var ownOptions: Set<String> { ["to"] }

  func run(_ console: Console) throws -> ExitStatus {
    let found = try device.find()
    console.warn(ofInterruptedOn: found)
    let policy = try ScenarioRunCommand.policy(found.layout, nil)
    let (draft, unreadable) = try DeviceFacts.draft(of: found, policy)
    console.remarks(unreadable, as: .warning("not in the scenario: "), all: true)
    try require(draft, of: found)
    if let first = draft.omitted.first {
      console.warning(
        "\(Sizes.count(draft.omitted.count, "app")) omitted, the first one '\(first)': a scenario "
          + "has at most \(ScenarioDocument.maximumPatterns) patterns and "
          + "\(ScenarioDocument.maximumSteps) steps")
    }
    let status: ExitStatus = unreadable.isEmpty ? .done : .doneInPart
    guard let file else {
      if output.json {
        try console.result(["file": .null, "text": .string(draft.text)])
      } else {
        try console.result(bytes: Array(draft.text.utf8).span)
      }
      return status
    }
    try write(draft.text, to: file)
    if output.json {
      try console.result(["file": .string(file.description), "text": .string(draft.text)])
    } else if !output.quiet {
      try console.result("wrote \(file); 'sandboxctl scenario run \(ShellWord.text(file))' runs it")
    }
    return status
  }

  /// Refuses a draft without any app.
  private func require(_ draft: ScenarioDraft, of device: Device) throws(OperationError) {
    guard draft.isEmpty else { return }
    throw OperationError(
      .failed, code: .noApp, "write a scenario for", subject: device.root,
      reason: draft.omitted.isEmpty
        ? "no installed app has data that its platform keeps"
        : "the data of each app has more parts than a scenario has patterns",
      hint: "'sandboxctl apps' lists the apps; sandboxctl-scenario(5) describes the file")
  }

  /// Writes a new file.
  private func write(_ text: String, to file: ByteString) throws {
    guard let path = file.absolute, let name = path.lastComponent else {
      throw UsageError(.invalidValue, "'\(file)' is not the name of a file")
    }
    do throws(SystemError) {
      try AtomicFile.write(
        Array(text.utf8), as: name, in: Directory.open(path: path.parent), replacing: false)
    } catch {
      guard error.isExisting else { throw error }
      // The error names the temporary file.
      throw OperationError(
        .failed, code: .targetExists, "write", subject: file,
        reason: "a file of that name exists", hint: "delete it, or give another name")
    }
  }
}
