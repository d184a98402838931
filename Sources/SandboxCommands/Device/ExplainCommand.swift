internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl explain PATH`: which rules and marks decide on an entry.
struct ExplainCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "explain",
      abstract: "Say why an entry is judged as it is",
      usage: "sandboxctl explain <path> [--root <dir>] [<options>]",
      discussion: """
        Prints every rule and mark that means the entry, in order, with its place in the policy and \
        what it decided, and then both verdicts: what sandboxctl keeps, and what the platform itself \
        does. With --purge it says, too, whether a purge would take it, with what, at which levels \
        of pressure, and else why not. PATH is a logical path, a real path, or <app>/<path in its data>; it need not exist.

        \(Examples.text([
          "sandboxctl explain --root device apps/org.example.notebook/data/Documents",
          "sandboxctl explain --root device apps/org.example.notebook/data/tmp/x --json",
          "sandboxctl explain --root device notebook/Library/Caches --purge",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("What to explain.", valueName: "path"))
  var path: ByteString

  @Flag(help: "Say, too, whether a purge would take it, and why.")
  var purge = false

  @OptionGroup var verdict: VerdictOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let found = try device.find()
    console.warn(ofInterruptedOn: found)
    let compiled = try policy.compile(for: found, output, console)
    let place = try DevicePath(path, on: found).logical
    let (container, inner) = try found.resolve(place)
    let query = try self.query(container, inner, found, compiled)
    let explanation = compiled.explain(
      query.query, scanStart: Host.now().seconds, for: try verdict.destination)
    let plan = purge ? try PurgeCommand.look(found, compiled) : nil
    let judgement = plan?.judge(container, inner)
    if output.json {
      let purge = judgement.map { $0.json(at: plan?.request.now ?? Host.now()) }
      try console.result(
        explanation.json(
          place, exists: query.exists, for: try verdict.destination, purge: purge))
    } else {
      try ExplanationText(explanation, place, exists: query.exists).write(
        console, destination: try verdict.destination)
      for line in judgement?.lines(at: plan?.request.now ?? Host.now()) ?? [] {
        try console.result(line)
      }
    }
    return .done
  }

  /// The question: of the entry with its marks as it is there, or of a file that is not there yet.
  private func query(
    _ container: Container, _ inner: ByteString, _ device: Device, _ policy: CompiledPolicy
  ) throws -> (query: EntryQuery, exists: Bool) {
    var options = ScanOptions()
    options.only = inner
    let scan = DeviceScan.run(device, policy: policy, options: options) { $0 == container }
    if let found = scan.containers.first, let index = found.index(of: inner) {
      return (found.query(index), true)
    }
    return (container.query(inner.components.map { Array($0.bytes) }, EntryFacts(.file)), false)
  }
}
