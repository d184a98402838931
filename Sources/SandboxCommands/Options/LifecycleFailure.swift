internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// Errors for paths on the command line.
enum LifecycleFailure {
  /// A logical path of a container that the device does not have.
  static func noContainer(_ path: ByteString) -> LifecycleError {
    LifecycleError(
      .notFound, "'\(path)' is not in a container of this device",
      hint: "'sandboxctl apps' lists the containers")
  }

  /// A real path that is not in a container.
  static func outside(_ path: ByteString, _ device: Device) -> LifecycleError {
    LifecycleError(
      .notFound, "'\(path)' is not in a container of the device '\(device.root)'",
      hint: "'sandboxctl apps --json' prints the path of each container")
  }
}
