package import InterApp
package import PolicyEngine
package import SandboxModel
package import Scenario
package import SystemIO

/// One scenario with one version of the platform.
package struct ScenarioCase: Sendable {
  package let document: ScenarioDocument
  package let version: ScenarioDocument.Version

  /// Creates a case.
  package init(_ document: ScenarioDocument, _ version: ScenarioDocument.Version) {
    (self.document, self.version) = (document, version)
  }
}

/// The conditions of a run.
package struct ScenarioOptions: Sendable {
  /// The program and its version, as snapshots record it.
  package var program: String
  /// The directory in which the private directory is created; nil for one in memory if the devices
  /// are small, or otherwise `/tmp`.
  package var temporary: ByteString?
  /// The directory to which the copies of cases that did not pass are moved; nil to keep none.
  package var kept: ByteString?
  /// The number of cases that run at once.
  package var threads = Host.processors
  /// Returns the policy for a layout and a version of the platform; nil is the newest.
  package var compile: @Sendable (Layout, OSVersion?) throws -> CompiledPolicy
  /// Returns the declarations of a device's apps with the system's rules, which decide which apps
  /// accept a document.
  package var declarations: @Sendable (Device) throws -> InterAppModel
  /// Returns the space of the volume of a directory; nil if it is not known.
  package var space: @Sendable (ByteString) -> VolumeSpace? = { path in
    try? Directory.open(path: path).space()
  }
  /// Whether the run should end early. Called by several threads.
  package var isStopping: @Sendable () -> Bool = { false }

  /// Creates options.
  package init(
    program: String, declarations: @escaping @Sendable (Device) throws -> InterAppModel,
    compile: @escaping @Sendable (Layout, OSVersion?) throws -> CompiledPolicy
  ) {
    (self.program, self.declarations, self.compile) = (program, declarations, compile)
  }
}

extension OperationError {
  /// The error for a run that was asked to stop.
  static let scenarioInterrupted = OperationError(
    .interrupted, "the scenarios were interrupted: the device is unchanged", hint: "run them again")
}
