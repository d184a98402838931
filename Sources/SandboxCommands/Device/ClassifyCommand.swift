internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl classify [PATH|--stdin0]`: what each entry is, and what becomes of it.
struct ClassifyCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "classify",
      abstract: "Say what data is and what becomes of it",
      usage: "sandboxctl classify [<path>|--stdin0] [--root <dir>] [<options>]",
      discussion: """
        For each entry: its data class, whether a backup stores it, what an update, a purge and a \
        restore do with it. PATH is a logical path, a real path, or <app>/<path in its data>; without \
        it the whole device is classified, and text output lists its twenty largest files unless \
        --all is given. With --stdin0 logical paths are read from standard input, \
        each ended by a NUL and a directory's by a slash before it: no file is looked at.

        The second column says what a backup does: kept, bare (a directory that is there only for what \
        is kept below it), or left-out. A container's root is no data of its own: its class is '-', \
        null in JSON, where no rule names it.

        \(Examples.text([
          "sandboxctl classify --root device --summary",
          "sandboxctl classify --root device apps/org.example.notebook/data/Library",
          "sandboxctl classify --root device --json --for unencrypted",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("Classify only what lies here.", valueName: "path"))
  var path: ByteString?

  @Flag(name: .customLong("stdin0"), help: "Read logical paths from standard input.")
  var readsInput = false

  @Flag(help: "Add up by data class instead of naming each entry.")
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
