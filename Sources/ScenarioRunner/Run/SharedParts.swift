internal import PolicyEngine
internal import SampleDevice
internal import SandboxModel
internal import Synchronization
internal import SystemIO

/// The parts that the cases of a run share: the sample devices, each made once and then copied, and
/// the compiled policies.
final class SharedParts: Sendable {
  let directory: RunDirectory
  let options: ScenarioOptions

  private struct PolicyKey: Hashable {
    let layout: Layout
    let version: OSVersion?
  }

  private let samples = Mutex<[Int: ByteString]>([:])
  private let policies = Mutex<[PolicyKey: CompiledPolicy]>([:])

  init(_ directory: RunDirectory, _ options: ScenarioOptions) {
    (self.directory, self.options) = (directory, options)
  }

  /// Returns the path of the sample device after a day of use. It must not be changed.
  func sample(day: Int) throws -> ByteString {
    try samples.withLock { samples in
      if let path = samples[day] { return path }
      let path = directory.path.appending(ByteString("sample-\(day)"))
      _ = try SampleDevice.make(at: path, day: day)
      samples[day] = path
      return path
    }
  }

  /// Returns the policy for a layout and a version of the platform.
  func policy(_ layout: Layout, _ version: OSVersion?) throws -> CompiledPolicy {
    let key = PolicyKey(layout: layout, version: version)
    return try policies.withLock { policies in
      if let policy = policies[key] { return policy }
      let policy = try options.compile(layout, version)
      policies[key] = policy
      return policy
    }
  }
}
