internal import ArgumentParser
internal import Codecs
internal import Lifecycle
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

  @OptionGroup var verdict: VerdictOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if readsInput, path != nil {
      throw ValidationError("PATH and --stdin0 cannot be given together.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    if readsInput {
      try PathClassification(self).run(console)
      return .done
    }
    let found = try device.find()
    console.warn(ofInterruptedOn: found)
    let compiled = try policy.compile(for: found, output, console)
    let place = try path.map { try DevicePath($0, on: found) }
    let options = ScanOptions(destination: try verdict.destination, view: verdict.view)
    let scan = DeviceScan.run(found, policy: compiled, options: options) {
      place?.concerns($0) ?? true
    }
    let result = ClassifiedEntries(scan, within: place?.logical, view: verdict.view, console)
    try result.write(asJSON: output.json, summary: summary, listsAll: list.all)
    let places = RealPaths(found)
    for container in scan.containers {
      for remark in container.unreadable {
        let path = container.container.logicalPrefix.appending(remark.path)
        let named = PathRemark(path: path, remark: remark.remark)
        console.warning("not classified: \(places.text(named))")
      }
    }
    return scan.containers.contains { !$0.unreadable.isEmpty } ? .doneInPart : .done
  }
}
