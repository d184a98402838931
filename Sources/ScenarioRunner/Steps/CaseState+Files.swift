internal import Audit
internal import DeviceScan
internal import InterApp
internal import PolicyEngine
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The changes that apps and the user make.
extension CaseState {
  /// Writes a file as an app does: with the directories above it, replacing the one that is there.
  func write(_ writing: ScenarioAction.Writing) throws {
    let bytes = try content(writing.content)
    try onEntry(writing.path, making: true) { directory, name in
      let present = try directory.statusIfPresent(name)
      if let present, present.kind == .directory {
        throw OperationError(
          .failed, code: .notAFile, "write", subject: writing.path.bytes,
          reason: "it is a directory", hint: "remove it first")
      }
      let mode = writing.mode.map { UInt16($0 & 0o1777) } ?? present?.permissions ?? 0o644
      try Self.replace(name, with: bytes, permissions: mode, in: directory)
    }
  }

  /// Writes a file beside its place and renames it, so that no other name of it changes.
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

  /// Delivers a document to an app as AirDrop and document interaction do: only if the app's document
  /// types accept it, as a file of mode 0444 in its Inbox, with `-1` after a name in use (Document
  /// Interaction Programming Topics for iOS).
  func deliver(_ delivery: ScenarioAction.Delivery) throws {
    let device = try device()
    let app = try device.app(delivery.app)
    guard app.isInstalled else {
      throw OperationError(
        .failed, code: .appNotInstalled, "deliver to", subject: app.identifier,
        reason: "the app is not installed")
    }
    let (name, bytes) = try document(delivery)
    let catalog = AppCatalog(reading: device)
    let tree = TypeTree(system: try shared.options.types(), apps: catalog.types)
    let head = Array(bytes.prefix(FileSignature.headLength))
    let type = tree.type(ofFile: name, kind: .file, head: head).type
    let handlers = TypeHandlers(of: type, in: tree, catalog.apps).handlers
    guard handlers.contains(where: { $0.app == app.identifier }) else {
      throw OperationError(
        .failed, code: .invalidInput, "deliver to", subject: app.identifier,
        reason: "no document type of the app accepts the type '\(type)'",
        hint: "'sandboxctl interapp handlers --type \(type)' lists the apps that do")
    }
    let data = LogicalContainer.data(LogicalName(app.identifier.bytes))
    try onEntry(LogicalPath(data, "Documents/Inbox/x"), making: true) { directory, _ in
      try self.carryOut {
        try Self.replace(
          Self.freeName(name, in: directory), with: bytes, permissions: 0o444, in: directory)
      }
    }
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

  /// Returns the name of a document in the Inbox: with a number before the extension if it is in use.
  private static func freeName(
    _ name: ByteString, in directory: borrowing Directory
  ) throws -> ByteString {
    if try directory.statusIfPresent(name) == nil { return name }
    let bytes = Array(name.bytes)
    let dot = bytes.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? bytes.count
    for number in 1...999 {
      let free = ByteString(bytes[..<dot] + Array("-\(number)".utf8) + bytes[dot...])
      if try directory.statusIfPresent(free) == nil { return free }
    }
    throw OperationError(
      .failed, code: .targetExists, "deliver", subject: name, reason: "1000 such names are in use")
  }

  // MARK: - Places

  /// Returns the bytes of a content.
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
  /// - Parameter making: whether missing directories are made, as an app makes them.
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
