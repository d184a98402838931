internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl explain PATH`: shows the rules and marks that decide about an entry.
struct ExplainCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "explain",
      abstract: "Explain the policy decision for a path",
      usage: "sandboxctl explain <path> [--root <dir>] [<options>]",
      discussion: """
        Prints every rule and mark that matches the entry, in order, with its position in the \
        policy and its effect, then two verdicts: sandboxctl's own, and that of the platform. With \
        --purge also prints whether a purge may delete the entry and at which pressure levels, or \
        why not. PATH is a logical path, a real path, or <app>/<path in its data>. It need not \
        exist.

        \(Examples.text([
          "sandboxctl explain --root device apps/org.example.notebook/data/Documents",
          "sandboxctl explain --root device notebook/tmp/x --json",
          "sandboxctl explain --root device notebook/Library/Caches --purge",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The path to explain.", valueName: "path"))
  var path: ByteString

  @Flag(help: "Explain whether a purge may delete the entry.")
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
    let query = try self.query(inner, in: container, of: found, policy: compiled)
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

  /// Returns the query for the entry with its marks, or for a regular file if the entry does not
  /// exist.
  private func query(
    _ inner: ByteString, in container: Container, of device: Device, policy: CompiledPolicy
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
