internal import Codecs
internal import DeviceTransaction
package import SandboxModel
package import SystemIO

/// The delivery of a file, or of a complete document package, into an app's inbox, as AirDrop and
/// document interaction do.
package struct Delivery {
  private let inbox: Inbox
  private let model: InterAppModel

  /// Prepares for an app.
  ///
  /// - Throws: `OperationError` if the app is not installed or its declarations cannot be read, or
  ///   if the layout has no inboxes.
  package init(
    to app: App, on device: Device, model: InterAppModel
  ) throws(OperationError) {
    guard app.isInstalled else {
      throw OperationError(
        .failed, code: .appNotInstalled, "deliver to", subject: app.identifier.bytes,
        reason: "the app is not installed", hint: "install it with 'sandboxctl install'")
    }
    inbox = try Inbox(of: app, on: device)
    guard model.catalog.app(app.identifier) != nil else {
      throw OperationError(
        .failed, code: .invalidPropertyList, "deliver to", subject: app.identifier.bytes,
        reason: "its Info.plist cannot be read, so the types that it opens are not known",
        hint: "'sandboxctl interapp handlers' says why")
    }
    self.model = model
  }

  /// The result for one file.
  package struct Outcome: Sendable {
    /// The logical path of the file in the inbox.
    package let path: ByteString
    package let type: TypeIdentifier
    /// The declaration of the app that accepts the type.
    package let handler: TypeHandlers.Handler
    /// The size in bytes; for a package, the sum of its files.
    package let size: UInt64
    package let hash: String
    /// Whether it is a document package, a directory.
    package let isPackage: Bool
  }

  /// The files previewed so far. Their names and their space count as used when the next one is
  /// previewed.
  package struct Preview {
    /// Nil before the first one.
    fileprivate var names: FreeName?
    /// The bytes that they would use on the volume.
    fileprivate var bytes: UInt64 = 0

    /// No files.
    package init() {}
  }

  /// The processes that use files of the app; if there are any, the app is running.
  package var uses: [Processes.Use] { inbox.uses }

  /// Delivers a file or a package.
  ///
  /// - Parameters:
  ///   - path: The path of a regular file or of a package; a symbolic link is followed.
  ///   - name: The name in the inbox, or nil for the file's own name.
  /// - Throws: `OperationError` if it is neither a regular file nor a package, if the app does not
  ///   accept its type, or if it cannot be copied. The inbox is then unchanged.
  package func deliver(
    _ path: ByteString, named name: ByteString? = nil
  ) throws(OperationError) -> Outcome {
    let source = try DeliverySource(path, named: name, in: model.tree)
    return try place(source, for: try handler(for: source))
  }

  /// Returns the result of delivering a file or a package after the previewed ones, and adds it to
  /// them. Changes no file; the hash is empty.
  ///
  /// - Throws: as `deliver`.
  package func preview(
    _ path: ByteString, after others: inout Preview
  ) throws(OperationError) -> Outcome {
    let source = try DeliverySource(path, in: model.tree)
    let handler = try handler(for: source)
    var names = if let names = others.names { names } else { try usedNames() }
    others.bytes.addClamping(try requireRoom(for: source, besides: others.bytes))
    let name = names.take(source.name)
    others.names = names
    return Outcome(
      path: inbox.path(name), type: source.type.type, handler: handler, size: source.size, hash: "",
      isPackage: source.isPackage)
  }

  /// Delivers bytes under a name, as an app passes data that is not a file.
  package func deliver(
    _ bytes: [UInt8], named name: ByteString
  ) throws(OperationError) -> Outcome {
    let source = try DeliverySource(bytes, named: name, in: model.tree)
    return try place(source, for: try handler(for: source))
  }

  /// Returns the names that are in use in the inbox, which may not exist yet.
  private func usedNames() throws(OperationError) -> FreeName {
    guard let directory = try inbox.open() else { return FreeName() }
    do throws(SystemError) { return try FreeName(in: directory) } catch {
      throw OperationError(error)
    }
  }

  /// Returns the declaration under which the app accepts a file.
  private func handler(
    for source: borrowing DeliverySource
  ) throws(OperationError) -> TypeHandlers.Handler {
    let declarations = model.catalog.apps.filter { $0.app == inbox.app.identifier }
    let found = TypeHandlers(
      of: source.type.type, filenameExtension: TypeTree.filenameExtension(of: source.name),
      in: model.tree, declarations)
    if let handler = found.handlers.first, isComplete(handler, declarations) { return handler }
    throw OperationError(
      .failed, code: .typeRefused, "deliver", subject: source.path,
      reason: refusal(of: source.type.type, found, declarations),
      hint: "'sandboxctl interapp handlers --file' lists the apps that open it")
  }

  /// Whether the declaration has a name and a type, without which the system ignores it.
  private func isComplete(
    _ handler: TypeHandlers.Handler, _ declarations: [AppDeclarations]
  ) -> Bool {
    declarations.flatMap(\.documentTypes).contains { $0.key == handler.key && $0.isComplete }
  }

  private func refusal(
    of type: TypeIdentifier, _ found: TypeHandlers, _ declarations: [AppDeclarations]
  ) -> String {
    let app = inbox.app.identifier
    if !found.handlers.isEmpty {
      return "'\(app)' declares the type '\(type)' without a name, so the system ignores it"
    }
    if !found.excluded.isEmpty {
      return "'\(app)' declares the type '\(type)' with the rank None"
    }
    if declarations.allSatisfy(\.documentTypes.isEmpty) {
      return "'\(app)' declares no document types, so no file can be passed to it"
    }
    return "'\(app)' declares no type to which '\(type)' conforms"
  }
}

// MARK: - Copying

extension Delivery {
  private func place(
    _ source: borrowing DeliverySource, for handler: TypeHandlers.Handler
  ) throws(OperationError) -> Outcome {
    var locked = try Inbox.Locked(inbox)
    let directory = try inbox.make()
    _ = try requireRoom(for: source)
    let staged = try source.stage(in: directory)
    do throws(SystemError) {
      var names = try FreeName(in: directory)
      let name = names.take(source.name)
      var note = InboxNote(
        name: name, isPackage: source.isPackage, size: staged.size, hash: staged.hash,
        time: Host.now(), isPending: true)
      // The note is durable before the file: a file in the inbox without a note would count as
      // written by the app.
      locked.notes[name] = note
      try locked.write()
      try staged.commit(as: name)
      note.isPending = false
      locked.notes[name] = note
      try locked.write()
      return Outcome(
        path: inbox.path(name), type: source.type.type, handler: handler, size: note.size,
        hash: note.hash, isPackage: note.isPackage)
    } catch {
      // The temporary file is removed by now.
      throw OperationError(
        .failed, code: error.code, "deliver", subject: source.path, reason: error.reason,
        hint: error.hint)
    }
  }

  /// Checks that the volume of the inbox has space for a file or package in addition to others.
  ///
  /// - Parameter others: the bytes that the others use.
  /// - Returns: the bytes that it uses.
  private func requireRoom(
    for source: borrowing DeliverySource, besides others: UInt64 = 0
  ) throws(OperationError) -> UInt64 {
    let space = try inbox.space()
    // Each entry of a package uses at least one block.
    let blocks = source.isPackage ? UInt64(source.entries) * space.allocated(by: 1) : 0
    let wanted = [space.allocated(by: source.size), blocks].clampedSum
    let available = space.available - min(others, space.available)
    guard wanted > available else { return wanted }
    throw OperationError(
      .failed, code: .noSpace, "deliver", subject: source.path,
      reason: "it needs \(wanted) bytes, and the device has \(available) available"
        + (others > 0 ? " after the files before it" : ""),
      hint: "'sandboxctl purge' makes room")
  }
}
