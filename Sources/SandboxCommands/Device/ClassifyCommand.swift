internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl classify [PATH
/// --stdin0]`: shows the data class and policy decision of each path.
struct ClassifyCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "classify",
      abstract: "Show the data class and policy decision of each path",
      usage: "sandboxctl classify [<path>|--stdin0] [--root <dir>] [<options>]",
      discussion: """
        Shows for each entry its data class, whether a backup stores it, and what an update, a \
        purge and a restore do with it. PATH is a logical path, a real path, or <app>/<path in its \
        data>. Without PATH the whole device is classified; text output then lists the 20 largest \
        files unless --all is given.

        The second column is the backup's decision; 'bare' is a directory that is stored only \
        because of entries below it. The root of a container has the class '-' (null in JSON) if \
        no rule matches it.

        \(Examples.text([
          "sandboxctl classify --root device --summary",
          "sandboxctl classify --root device apps/org.example.notebook/data/Library",
          "sandboxctl classify --root device --json --for unencrypted",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp("The path to classify (default: the whole device).", valueName: "path"))
  var path: ByteString?

  @Flag(
    name: .customLong("stdin0"),
    help: "Read NUL-terminated logical paths from standard input, without access to files.")
  var readsInput = false

  @Flag(help: "Print totals for each data class instead of each entry.")
  var summary = false

  @Flag(help: "List only directories that are kept although their names suggest a cache.")
  var findings = false

  @OptionGroup var verdict: VerdictOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.oneOf(["stdin0"], [OptionPrecedence.arguments])
      + OptionPrecedence.oneOf(["findings"], ["stdin0", "summary"])
  }

  func validate() throws {
    if readsInput, path != nil {
      throw ValidationError("'--stdin0' and a path cannot be used together.")
    }
    if findings, readsInput || summary {
      let other = readsInput ? "--stdin0" : "--summary"
      throw ValidationError("'--findings' and '\(other)' cannot be used together.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    if readsInput {
      try PathInput(self).run(console)
      return .done
    }
    let found = try device.find(for: path.map { [$0] } ?? [])
    console.warn(ofInterruptedOn: found)
    let compiled = try policy.compile(for: found, output, console)
    let scope = try path.map { try DevicePath($0, on: found).logical }
    let scan = try scan(found, compiled, within: scope)
    let realPaths = RealPaths(found)
    let unreadable = scan.containers.flatMap(\.unreadableByLogicalPath).filter { remark in
      guard let path = scope?.bytes else { return true }
      return remark.path.isWithin(path) || path.isWithin(remark.path)
    }
    if let scope, unreadable.isEmpty { try require(scope, in: scan) }
    try write(scan, within: scope, console)
    console.remarks(
      unreadable, as: .warning("not classified: "), all: list.all, text: realPaths.text)
    return unreadable.isEmpty ? .done : .doneInPart
  }

  /// Refuses a path that does not exist: an empty list would suggest that it has no entries.
  private func require(_ scope: LogicalPath, in scan: DeviceScan) throws(OperationError) {
    let exists = scan.containers.contains { found in
      found.container.logicalPrefix.isWithin(scope.bytes)
        || found.entries.indices.contains { found.logicalPath($0).isWithin(scope.bytes) }
    }
    if exists { return }
    throw OperationError(
      .notFound, "classify", subject: scope.bytes, reason: "the device has no such path",
      hint: "check the spelling; 'sandboxctl explain' also explains a path that does not exist")
  }

  private func write(_ scan: DeviceScan, within scope: LogicalPath?, _ console: Console) throws {
    if findings {
      let names = CacheNamesReport(
        scan.cacheNames(within: scope?.bytes, in: verdict.view), on: scan.device.layout)
      return try output.json ? names.writeJSON(console) : names.write(console, listsAll: list.all)
    }
    let result = Entries(scan, within: scope, view: verdict.view, console)
    try result.write(asJSON: output.json, summary: summary, listsAll: list.all)
    // For entries of one path, and in JSON, there are no further messages.
    guard !output.json, !output.quiet, scope == nil else { return }
    CacheNamesReport(scan.cacheNames(in: verdict.view), on: scan.device.layout).note(console)
  }

  /// Scans a path of a device, or the whole device.
  private func scan(
    _ device: Device, _ policy: CompiledPolicy, within scope: LogicalPath?
  ) throws -> DeviceScan {
    let destination = try verdict.destination
    return try progress.plan("scan", output) { isStopping in
      DeviceScan.run(
        device, policy: policy, within: scope,
        options: ScanOptions(
          destination: destination, view: verdict.view, isStopping: isStopping))
    }
  }
}

extension ClassifyCommand {
  /// `classify --stdin0`: classifies logical paths from standard input without access to any file.
  private struct PathInput {
    private let command: ClassifyCommand

    init(_ command: ClassifyCommand) { self.command = command }

    func run(_ console: Console) throws {
      guard let input = try StandardStream.readInput(limit: Self.limit) else {
        throw UsageError(
          .limitExceeded, "standard input has more than \(Self.limit >> 20) MiB of paths",
          hint: "split them into several runs")
      }
      let layout = try command.device.chosenLayout() ?? .coreSimulator
      let policy = try command.policy.compile(for: layout, version: nil)
      var classifier = Classifier(policy)
      for path in input.split(separator: 0) {
        try classify(ByteString(path), with: &classifier, console)
      }
    }

    /// The maximum size of the input, in bytes.
    private static let limit = 1 << 30

    private func classify(
      _ given: ByteString, with classifier: inout Classifier, _ console: Console
    ) throws {
      let isDirectory = given.bytes.last == UInt8(ascii: "/")
      let path = ByteString(joining: given.components)
      guard let (container, inner) = try LogicalPath(argument: path).location else {
        throw UsageError(
          .invalidPath, "'\(given)' is not a logical path in a container",
          hint: "write it like 'apps/com.example.app/data/Documents/x'")
      }
      let state = container.state(&classifier)
      let facts = EntryFacts(isDirectory ? .directory : .file)
      let end = inner.withSpan { classifier.descend(state, path: $0) }
      let verdict = classifier.verdicts(end, facts)[command.verdict.view]
      let destination = try command.verdict.destination.deciding(for: container.kind)
      let mode = verdict.backup.mode(for: destination)
      let stored: ScannedEntry.Selection = mode == .never ? .excluded : .included
      if command.output.json {
        let members =
          JSON.path(path) + [
            JSON.Member("type", .string(isDirectory ? "directory" : "file")),
            JSON.Member("stored", .string(stored.word)),
          ] + verdict.members(isRoot: inner.isEmpty)
          + (isDirectory ? [] : verdict.protectionMembers(stated: nil))
        try console.result(JSON.object(members))
      } else {
        try console.result(
          Entries.line(
            verdict, stored, at: path, kind: isDirectory ? .directory : .file,
            isRoot: inner.isEmpty))
      }
    }
  }
}

extension LogicalContainer {
  /// Returns the classifier's state for the container's root.
  func state(_ classifier: inout Classifier) -> Classifier.State {
    var group: String?
    if case .group(let name) = self { group = name.identifier.utf8 }
    return classifier.root(kind, app: app?.identifier.utf8, group: group)
  }
}

/// The verdict to show.
struct VerdictOptions: ParsableArguments {
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "The destination of the backup: cloud or unencrypted; may be repeated (default: a "
        + "local, encrypted repository).", valueName: "destination"),
    completion: .list(["cloud", "unencrypted"]))
  var destinations: [String] = []

  @Flag(help: "Keep bundles in a cloud, too, as 'backup --with-bundles' does.")
  var withBundles = false

  @Flag(help: "Show the platform's own decision instead of sandboxctl's.")
  var asPlatform = false

  /// The verdict's view.
  var view: Verdicts.View { asPlatform ? .platform : .keep }

  /// The destination of the backup.
  var destination: Destination {
    get throws {
      var destination = Destination()
      destination.includesBundles = withBundles
      for word in destinations {
        switch word {
        case "cloud": destination.isCloud = true
        case "unencrypted": destination.isUnencrypted = true
        default:
          throw UsageError(
            .invalidValue, "there is no destination '\(word)'",
            hint: "choose 'cloud' or 'unencrypted'")
        }
      }
      return destination
    }
  }
}
