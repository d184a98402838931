internal import ArchiveStore
internal import ArgumentParser
internal import BuiltinPolicies
internal import InterApp
internal import PolicyEngine
internal import SandboxModel
internal import Scenario
internal import ScenarioRunner
internal import SystemIO

/// `sandboxctl scenario run [FILE…]`: runs scenarios on copies of their devices.
struct ScenarioRunCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "run",
      abstract: "Run scenarios on copies of their devices",
      usage: "sandboxctl scenario run [<file> ...] [<options>]",
      discussion: """
        Runs each scenario for each version of the platform that it names. The devices are only \
        read: everything is done on copies in a private directory ($TMPDIR, memory or /tmp), with \
        a repository of its own, by the built-in policies. Nothing runs if a copy does not fit \
        there. Your repository, configuration, policies and keys are not used.

        The exit status is 5 if an expectation fails or a step cannot be done, and 2 for a file \
        with a mistake; nothing runs then. Without FILE the scenarios that come with the program \
        run.

        \(Examples.text([
          "sandboxctl scenario run app.scenario.yaml",
          "sandboxctl scenario run app.scenario.yaml --junit results.xml",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The scenarios: files, or names that 'scenario list' prints (default: all of these).",
      valueName: "file"), completion: .file())
  var files: [ByteString] = []

  @Option(
    name: .customLong("filter"),
    help: ArgumentHelp(
      "Run only scenarios with this text in their names; may be repeated.", valueName: "text"))
  var filters: [String] = []

  @Option(
    name: .customLong("only-version"),
    help: ArgumentHelp(
      "Run only for this version of the platform; may be repeated.", valueName: "version"))
  var onlyVersions: [String] = []

  @Option(
    help: ArgumentHelp("Write the results to this file as JUnit XML.", valueName: "file"),
    completion: .file())
  var junit: ByteString?

  @Flag(help: "Print TAP (Test Anything Protocol) instead of text.")
  var tap = false

  @Option(
    help: ArgumentHelp(
      "Keep the copies of devices of failed scenarios in this directory.", valueName: "dir"),
    completion: .directory)
  var keepCopy: ByteString?

  @OptionGroup var output: OutputOptions

  static var ownOptions: Set<String> {
    ["filter", "only-version", "junit", "tap", "keep-copy"]
  }

  static var precedence: [OptionPrecedence] { OptionPrecedence.oneOf(["json"], ["tap"]) }

  func validate() throws {
    if output.json, tap {
      throw ValidationError("'--json' and '--tap' cannot be used together.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    let (documents, areValid) = try ScenarioFiles.read(files) { issue in
      try output.json ? console.result(issue.json) : console.result(issue.description)
    }
    guard areValid else { return .wrongUsage }
    let cases = try cases(of: documents)
    // Before the run, because its results would be lost.
    if let junit { _ = try Self.reportPath(junit) }
    try StopSignals.watch()
    let (started, start) = (Host.now(), Host.monotonicSeconds())
    let results = try ScenarioRunner(try options()).run(cases)
    let report = ScenarioReport(
      results: results, started: started, seconds: Host.monotonicSeconds() - start)
    try write(report, console)
    return report.isSuccess ? .done : .goalNotMet
  }

  /// Returns the built-in policy for a layout and a version of the platform; nil is the newest.
  static func policy(_ layout: Layout, _ version: OSVersion?) throws -> CompiledPolicy {
    try PolicyLibrary(PolicyFiles.builtin).compile(
      PolicyRequest(policy: nil, layout: layout, osVersion: version, patterns: []))
  }

  private func options() throws -> ScenarioOptions {
    var options = ScenarioOptions(
      program: Version.text,
      declarations: { try InterAppModel(reading: $0) },
      compile: Self.policy)
    if let temporary = Host.environment("TMPDIR"), temporary.isAbsolute {
      options.temporary = temporary
    }
    options.kept = keepCopy?.absolute
    options.isStopping = StopSignals.isStopping
    return options
  }

  /// Returns the cases to run.
  private func cases(of documents: [ScenarioDocument]) throws -> [ScenarioCase] {
    let wanted = try onlyVersions.map { text in
      guard let version = ScenarioDocument.Version(text) else {
        throw UsageError(
          .invalidValue, "'\(ByteString(text))' is not a version",
          hint: "write numbers with dots, for example 5.0.1, or 'now'")
      }
      return version.osVersion
    }
    let found = documents.filter { document in
      filters.isEmpty || filters.contains { document.name.contains($0) }
    }.flatMap { document in
      document.versions.filter { wanted.isEmpty || wanted.contains($0.osVersion) }
        .map { ScenarioCase(document, $0) }
    }
    if found.isEmpty {
      throw UsageError(
        .notFound, "no scenario matches",
        hint: "'--filter' and '--only-version' select among the names and versions of the files")
    }
    return found
  }

  private func write(_ report: ScenarioReport, _ console: Console) throws {
    if let junit { try Self.write(report.junit, to: junit) }
    if output.json { return try console.result(report.json) }
    if tap { return try console.result(bytes: Array(report.tap.utf8).span) }
    if output.quiet, report.isSuccess { return }
    try console.result(bytes: Array(report.text.utf8).span)
  }

  /// Writes a file, which appears in one step.
  private static func write(_ text: String, to path: ByteString) throws {
    let path = try reportPath(path)
    try AtomicFile.write(
      Array(text.utf8), as: path.lastComponent ?? "", in: Directory.open(path: path.parent))
  }

  /// Returns the absolute path of a file to write, without links. A rename would replace anything
  /// else with the file: a link, or a device such as `/dev/null`.
  private static func reportPath(_ path: ByteString) throws -> ByteString {
    guard let target = path.absolute.map({ Host.resolved($0) }), let name = target.lastComponent
    else { throw UsageError(.invalidValue, "'\(path)' is not the name of a file") }
    let found = try Directory.open(path: target.parent).statusIfPresent(name)
    guard let found, found.kind != .file else { return target }
    throw UsageError(
      .invalidValue, "'--junit': '\(path)' is not a regular file",
      hint: "give the name of a new file, or of one to replace")
  }
}
