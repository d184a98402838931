// ScenarioRunner: performs the scenarios of module Scenario.
//
// Each scenario with each version of the platform is one case. A case works on its own copy of the
// device, with its own repository and cache, in a private directory (mode 0700) that is removed at the
// end. The device is only read; nothing of the user's is used: no repository, configuration, cache,
// mark or key. The steps call the same operations as the commands, with the policy for the version of
// the case. An interruption makes every change fail from a given one on, as if the process had been
// killed there, so that it is the same in each run.
//
// Not guaranteed: that the private directory is removed after a SIGKILL of the program, or after a
// second Ctrl-C.
package import InterApp
package import PolicyEngine
package import SandboxModel
package import Scenario
package import SystemIO

/// The runner of scenarios.
package struct ScenarioRunner: Sendable {
  /// One scenario with one version of the platform.
  package struct Case: Sendable {
    package let document: ScenarioDocument
    package let version: ScenarioDocument.Version

    /// Creates a case.
    package init(_ document: ScenarioDocument, _ version: ScenarioDocument.Version) {
      (self.document, self.version) = (document, version)
    }
  }

  /// The conditions of a run.
  package struct Options: Sendable {
    /// The program and its version, as snapshots record it.
    package var program: String
    /// The directory in which the private directory is made.
    package var temporary: ByteString = "/tmp"
    /// The directory to which the copies of cases that did not pass are moved; nil to keep none.
    package var kept: ByteString?
    /// The number of cases that run at once.
    package var threads = Host.processors
    /// Returns the policy for a layout and a version of the platform; nil is the newest.
    package var compile: @Sendable (Layout, OSVersion?) throws -> CompiledPolicy
    /// Returns the system's types, by which apps accept documents.
    package var types: @Sendable () throws -> TypeTable
    /// Whether the run should end early. Called by several threads.
    package var isStopping: @Sendable () -> Bool = { false }

    /// Creates options.
    package init(
      program: String, types: @escaping @Sendable () throws -> TypeTable,
      compile: @escaping @Sendable (Layout, OSVersion?) throws -> CompiledPolicy
    ) {
      (self.program, self.types, self.compile) = (program, types, compile)
    }
  }

  private let options: Options

  /// Creates a runner.
  package init(_ options: Options) { self.options = options }

  /// Runs cases, several at once, and returns their results in the same order.
  ///
  /// - Parameter didEnd: receives each result as soon as it is known, by several threads.
  /// - Throws: `SystemError` if the private directory cannot be made or no thread can be started;
  ///   `OperationError`: `interrupted`, after the private directory is removed.
  package func run(
    _ cases: [Case], didEnd: @escaping @Sendable (ScenarioResult) -> Void = { _ in }
  ) throws -> [ScenarioResult] {
    let directory = try RunDirectory(in: options.temporary)
    defer { directory.remove() }
    let shared = SharedParts(directory, options)
    let results = ResultList(count: cases.count)
    let workers = try Workers(
      count: min(options.threads, max(1, cases.count)), capacity: 4, name: "scenario")
    for (number, one) in cases.enumerated() {
      workers.submit {
        guard let result = CaseRun(one, number, shared).run() else { return }
        results.set(result, at: number)
        didEnd(result)
      }
    }
    workers.finish()
    if options.isStopping() { throw OperationError.scenarioInterrupted }
    return results.all
  }
}

extension OperationError {
  /// The error of a run that was asked to stop.
  static let scenarioInterrupted = OperationError(
    .interrupted, "the scenarios were interrupted: the device is unchanged", hint: "run them again")
}
