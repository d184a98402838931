internal import Audit
internal import DeviceScan
internal import InterApp
internal import PolicyEngine
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The changes that apps and the user make.
extension CaseState {
  /// Writes a file as an app does: with the directories above it, replacing an existing one.
  func write(_ writing: ScenarioAction.Writing) throws {
    let bytes = try content(writing.content)
    try onEntry(writing.path, making: true) { directory, name in
      let present = try directory.statusIfPresent(name)
      if let present, present.kind == .directory {
        throw OperationError(
          .failed, code: .notAFile, "write", subject: writing.path.bytes,
          reason: "it is a directory", hint: "remove it first")
      }
      // The mode of a link, which is replaced, is meaningless.
      let old = present?.kind == .file ? present?.permissions : nil
      let mode = writing.mode.map { UInt16($0 & 0o1777) } ?? old ?? 0o644
      try Self.replace(name, with: bytes, permissions: mode, in: directory)
    }
  }

  /// Writes a file under a temporary name and renames it, so that other hard links are not changed.
  private static func replace(
    _ name: ByteString, with bytes: [UInt8], permissions: UInt16, in directory: borrowing Directory
  ) throws(SystemError) {
    let temporary: ByteString = ".sandboxctl-scenario.tmp"
    let file = try directory.create(temporary, permissions: 0o600)
    try file.write(bytes)
    try file.setPermissions(permissions)
    try file.close()
    try directory.inheritOwner(temporary)
    try directory.rename(temporary, to: name, in: directory)
  }

  /// Removes a file, or a directory with its content.
  func remove(_ path: LogicalPath) throws {
    try onEntry(path, making: false) { directory, name in try directory.removeTree(name) }
  }

  /// Sets or removes a mark.
  func mark(_ marking: ScenarioAction.Marking) throws {
    guard let attribute = marking.attribute else {
      let operation = try MarkOperation(marking.path, on: device(), policy: policy)
      _ =
        marking.isExcluded
        ? try operation.exclude(for: Destination(), force: true, dryRun: false)
        : try operation.include(dryRun: false)
      return
    }
    try onEntry(marking.path, making: false) { directory, name in
      _ = try directory.status(name)
      let attributes = directory.attributes(of: name)
      let key = attribute.attributeName
      if marking.isExcluded {
        try attributes.set(key, to: [1])
      } else if try attributes.value(of: key) != nil {
        try attributes.remove(key)
      }
    }
  }

  // MARK: - Delivery

  /// Delivers a document to an app as AirDrop and document interaction do: a file, or a complete
  /// document package.
  func deliver(_ delivery: ScenarioAction.Delivery) throws {
    let device = try device()
    let package = try package(of: delivery)
    let (name, bytes) = package == nil ? try document(delivery) : ("", [])
    let operation = try Delivery(
      to: device.app(delivery.app), on: device, model: shared.options.declarations(device))
    _ = try carryOut {
      if let package { return try operation.deliver(package, named: delivery.name) }
      return try operation.deliver(bytes, named: name)
    }
  }

  /// Returns the path of the directory that is delivered, or nil if it is not a directory.
  private func package(of delivery: ScenarioAction.Delivery) throws -> ByteString? {
    guard case .file(let path) = delivery.content else { return nil }
    let resolved = try Host.realPath(document.resolved(path))
    guard let name = resolved.lastComponent else { return resolved }
    let kind = try Directory.open(path: resolved.parent).status(name).kind
    return kind == .directory ? document.resolved(path) : nil
  }

  private func document(
    _ delivery: ScenarioAction.Delivery
  ) throws -> (name: ByteString, bytes: [UInt8]) {
    let bytes = try content(delivery.content)
    if let name = delivery.name { return (name, bytes) }
    if case .file(let path) = delivery.content, let name = path.lastComponent {
      return (name, bytes)
    }
    return ("Document.txt", bytes)
  }

  // MARK: - Places

  /// Returns the bytes of the content.
  private func content(_ content: ScenarioContent) throws -> [UInt8] {
    switch content {
    case .text(let text): return Array(text.utf8)
    case .size(let size): return ScenarioContent.bytes(count: Int(clamping: size))
    case .file(let path):
      let limit = Int(ScenarioDocument.maximumContent)
      guard let bytes = try Descriptor.open(path: document.resolved(path)).readAll(limit: limit)
      else {
        throw OperationError(
          .failed, code: .tooLarge, "read", subject: path,
          reason: "it has more than \(limit >> 20) MiB")
      }
      return bytes
    }
  }

  /// Calls `body` with the directory of an entry of the current device. Links are not followed.
  ///
  /// - Parameter making: whether missing directories are created, as an app creates them.
  private func onEntry(
    _ path: LogicalPath, making: Bool, _ body: (borrowing Directory, ByteString) throws -> Void
  ) throws {
    let (container, inner) = try device().resolve(path)
    guard let name = inner.lastComponent else {
      throw OperationError(
        .failed, code: .invalidPath, "change", subject: path.bytes,
        reason: "it is a container, not an entry in one", hint: "name an entry in it")
    }
    var cursor = try DirectoryCursor(root: Directory.open(resolved: container.absolutePath))
    try cursor.move(to: inner.parent.components, making: making)
    try cursor.withDirectory { directory in try body(directory, name) }
  }
}
