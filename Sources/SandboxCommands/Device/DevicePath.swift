internal import SandboxModel
internal import SystemIO

/// A path of a device on the command line: logical, real, or `<app>/<path in its data>`.
struct DevicePath {
  let logical: LogicalPath

  /// Parses a path. It need not exist, but must be in or above a container.
  init(_ path: ByteString, on device: Device) throws {
    if let logical = try Self.real(path, device) {
      self.logical = logical
      return
    }
    let trimmed = ByteString(joining: path.components)
    let logical = try LogicalPath(argument: trimmed)
    let prefixes = device.containers.map(\.logicalPrefix)
    if prefixes.contains(where: { trimmed.isWithin($0) || $0.isWithin(trimmed) }) {
      self.logical = logical
      return
    }
    self.logical = try Self.inApp(trimmed, device)
  }

  /// Returns the logical path of a path that is absolute or begins with a dot, or of a relative one
  /// that exists; otherwise nil.
  private static func real(_ path: ByteString, _ device: Device) throws -> LogicalPath? {
    let real = path.isAbsolute ? path : (try? Host.realPath(path))
    if let real, let logical = try device.logicalPath(ofPath: real) { return logical }
    guard path.isAbsolute || path.beginsWithDots else { return nil }
    if let logical = try path.absolute.flatMap(device.logicalPath(ofPath:)) { return logical }
    throw OperationError(
      .notFound, code: .notInContainer, "find", subject: path,
      reason: "it is not in a container of the device '\(device.root)'",
      hint: "'sandboxctl apps --json' prints the path of each container")
  }

  private static func inApp(_ path: ByteString, _ device: Device) throws -> LogicalPath {
    let parts = path.components
    guard let first = parts.first else { return .root }
    if ["apps", "groups", "folders"].contains(first), parts.count > 1 {
      throw OperationError(
        .notFound, code: .notInContainer, "find", subject: path,
        reason: "it is not in a container of this device",
        hint: "'sandboxctl apps' lists the containers")
    }
    let app: App
    do {
      app = try device.app(first)
    } catch {
      // A path from the working directory that does not exist.
      if let logical = try path.absolute.flatMap(device.logicalPath(ofPath:)) { return logical }
      guard device.layout == .folder, let container = device.containers.first else { throw error }
      throw OperationError(
        .notFound, code: .notInContainer, "find", subject: path,
        reason: "it is not in the directory '\(device.root)'",
        hint: "write it as '\(container.logicalPrefix.appending(path))'")
    }
    let rest = ByteString(joining: parts.dropFirst())
    return try LogicalPath(.data(LogicalName(app.identifier.bytes)), rest)
  }
}

extension LogicalPath {
  /// Creates a path from the command line or standard input: a mistake in it is a usage error.
  init(argument bytes: ByteString) throws(OperationError) {
    do throws(ModelError) {
      try self.init(bytes)
    } catch {
      throw OperationError(
        .usage, code: error.errorCode, error.action, subject: bytes, reason: error.reason,
        hint: error.hint)
    }
  }
}
