internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// Failures that only a command line can have.
enum LifecycleFailure {
  /// A logical path of a container that the device does not have.
  static func noContainer(_ path: ByteString) -> LifecycleError {
    LifecycleError(
      .notFound, "'\(path)' lies in no container of this device",
      hint: "'sandboxctl apps' lists the containers")
  }

  /// A real path that lies in no container.
  static func outside(_ path: ByteString, _ device: Device) -> LifecycleError {
    LifecycleError(
      .notFound, "'\(path)' lies in no container of the device '\(device.root)'",
      hint: "'sandboxctl apps --json' tells where each container lies")
  }
}
