// ScenarioRunner: performs the scenarios of the module Scenario.
//
// Each scenario with each version of the platform is one case. A case works on its own copy of the
// device, with its own repository and cache, in a private directory (mode 0700) that is removed at
// the end. The device is only read; none of the user's own repositories, configuration, caches,
// marks and keys are used. The steps call the same operations as the commands, with the policy for
// the version of the case. An interruption makes every change from a given one on fail, as if the
// process had been killed there, so that it is the same in each run.
//
// Before the first copy is made, the devices are measured (`CopyRoom`): nothing runs if one does
// not fit, and fewer cases run at once if the copies of more would not fit together.
//
// After a SIGKILL of the program, or a second Ctrl-C, the private directory stays until the next
// run in the same temporary directory removes it (`RunDirectory`).
package import Scenario
internal import SystemIO

/// The runner of scenarios.
package struct ScenarioRunner: Sendable {
  private let options: ScenarioOptions

  /// Creates a runner.
  package init(_ options: ScenarioOptions) { self.options = options }

  /// Runs cases, several at once, and returns their results in the same order.
  ///
  /// - Parameter didEnd: receives each result as soon as it is known, by several threads.
  /// - Throws: `SystemError` if the private directory cannot be created or no thread can be
  ///   started; `OperationError`: `no_space` if the copy of a device certainly does not fit there;
  ///   `interrupted`, after the private directory is removed.
  package func run(
    _ cases: [ScenarioCase], didEnd: @escaping @Sendable (ScenarioResult) -> Void = { _ in }
  ) throws -> [ScenarioResult] {
    for place in options.temporary.map({ [$0] }) ?? ScratchLocation.all {
      RunDirectory.removeAbandoned(in: place)
    }
    let place = options.temporary ?? ScratchLocation.choose(for: cases)
    let room = try CopyRoom(for: cases, in: place, options)
    let directory = try RunDirectory(in: place)
    defer { directory.remove() }
    let shared = SharedParts(directory, options)
    let results = ResultList(count: cases.count)
    let workers = try Workers(
      count: min(options.threads, room.copies, max(1, cases.count)), capacity: 4,
      name: "scenario")
    for (number, one) in cases.enumerated() {
      workers.submit {
        guard let result = CaseRun(one, number: number, sharing: shared).run() else { return }
        results.set(result, at: number)
        didEnd(result)
      }
    }
    workers.finish()
    if options.isStopping() { throw OperationError.scenarioInterrupted }
    return results.all
  }
}
