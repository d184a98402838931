internal import ArchiveStore
internal import ArgumentParser
internal import Audit
internal import Codecs
internal import DeviceScan
internal import InterApp
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl audit`: checks a device's data against the platform's advice.
struct AuditCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "audit",
      abstract: "Check the data of apps against the platform's advice",
      usage: "sandboxctl audit [--root <dir>] [--fail-on <level>] [--baseline <file>] [<options>]",
      discussion: """
        Reports data that is lost by ordinary events, or backed up needlessly, with the rule, its \
        source and the command that mends it. Nothing is changed. With --fail-on the exit status is \
        5 if there is a finding of that level or above. Findings in a baseline, the output of an \
        earlier audit with --json or --format sarif, are not reported.

        If the repository exists, the changes between the last snapshots of the device are examined, \
        too. docs/audit.md describes each rule.

        \(Examples.text([
          "sandboxctl audit --root device", "sandboxctl audit --root device --json > known.json",
          "sandboxctl audit --root device --baseline known.json --fail-on warning",
          "sandboxctl audit --root device --format sarif > audit.sarif",
        ]))
        """)
  }

  static var ownOptions: Set<String> { ["baseline", "format"] }

  /// The form of the output.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case text, json, sarif
  }

  @Option(
    help: ArgumentHelp(
      "End with status 5 if there is a finding of this level or above: note, warning or error.",
      valueName: "level"),
    completion: .list(AuditLevel.allCases.map(\.rawValue)), transform: Self.level)
  var failOn: AuditLevel?

  @Option(
    help: ArgumentHelp(
      "Do not report the findings in this file, the output of an earlier audit.",
      valueName: "file"),
    completion: .file())
  var baseline: ByteString?

  @Option(
    help: ArgumentHelp(
      "The form of the output: text, json (as --json) or sarif (version 2.1.0).",
      valueName: "format"))
  var format: Format?

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  private static func level(_ word: String) throws -> AuditLevel {
    guard let level = AuditLevel(rawValue: word) else {
      throw ValidationError(
        "'\(word)' is not a level. Choose one of note, warning and error.")
    }
    return level
  }

  static var precedence: [OptionPrecedence] { OptionPrecedence.oneOf(["json"], ["format"]) }

  func validate() throws {
    if output.json, let format, format != .json {
      throw ValidationError("'--json' and '--format \(format.rawValue)' cannot be used together.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    if format == .json { console.isJSON = true }
    // Read first, so that a wrong file does not cost a scan.
    let known = try baseline.map { try Self.readBaseline($0) }
    let found = try device.find()
    console.warn(ofInterruptedOn: found)
    let compiled = try policy.compile(for: found, output, console)
    let scan = try progress.plan("audit", output) { isStopping in
      DeviceScan.run(
        found, policy: compiled,
        options: ScanOptions(destination: .unrestricted, isStopping: isStopping))
    }
    let history = try AuditHistory(of: scan, in: repository, console).read()
    let report = try DeviceAudit.run(
      scan, history: history,
      options: CommandOptions(device: device.words, repository: repository.suffix),
      excluding: known, types: TypeTable.ofTheSystem)
    try write(report, console)
    if let failOn, let worst = report.worst, worst >= failOn { return .goalNotMet }
    return report.unusable.isEmpty ? .done : .doneInPart
  }

  private func write(_ report: AuditReport, _ console: Console) throws {
    switch output.json ? .json : format ?? .text {
    case .text: try report.writeText(console, listsAll: list.all, isQuiet: output.quiet)
    case .json: try report.writeJSON(console)
    case .sarif: try console.result(SarifLog(report, version: Version.number).json.pretty)
    }
    if report.isIncompleteAsBaseline {
      console.warning(
        "there are more findings than the output has fingerprints for: as a baseline, it is "
          + "incomplete")
    }
    console.remarks(
      report.unusable, as: .warning("not examined: "), all: list.all,
      text: RealPaths(report.device).text)
  }

  private static func readBaseline(_ path: ByteString) throws -> AuditBaseline {
    guard let bytes = try Descriptor.open(path: path).readAll(limit: AuditBaseline.limit) else {
      throw OperationError(
        .failed, code: .limitExceeded, "use the baseline", subject: path,
        reason: "it has more than \(AuditBaseline.limit >> 20) MiB",
        hint: "mend findings until there are fewer, and write it again with 'sandboxctl audit "
          + "--json'")
    }
    return try AuditBaseline(reading: bytes, as: path)
  }
}

extension DeviceOptions {
  /// The options as the end of a command line: ` --root device`; empty if none is given.
  var words: String {
    var words = ""
    if let root { words += " --root " + ShellWord.text(root) }
    if let name { words += " --device " + ShellWord.text(name) }
    if let layout { words += " --layout " + ShellWord.text(layout) }
    return words
  }
}
