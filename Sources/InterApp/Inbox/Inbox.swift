internal import Codecs
internal import DeviceTransaction
package import SandboxModel
package import SystemIO

/// The inbox of an app, `Documents/Inbox`: the directory into which the system copies files that
/// another app or AirDrop passes to it (Document Interaction Programming Topics for iOS). The app
/// may read and delete files there, but not change them.
///
/// Only devices with the layout `coresimulator` have inboxes. No link is followed below the
/// container.
package struct Inbox {
  package let app: App
  let device: Device
  let container: Container

  static let documents: ByteString = "Documents"
  static let directory: ByteString = "Inbox"

  /// Prepares for an app.
  ///
  /// - Throws: `OperationError` if the layout has no inboxes, or if the app has no data container.
  package init(of app: App, on device: Device) throws(OperationError) {
    guard device.layout == .coreSimulator else {
      throw OperationError(
        .failed, code: .layoutUnsupported, "open the inbox of", subject: app.identifier.bytes,
        reason: "apps of the layout '\(device.layout.rawValue)' have no inbox",
        hint: "these commands need a device of the layout coresimulator")
    }
    let containers = device.containers(of: app)
    guard let container = containers.first(where: { $0.kind == .data }) else {
      throw OperationError(
        .failed, code: .appNotInstalled, "open the inbox of", subject: app.identifier.bytes,
        reason: "the app has no data container", hint: "'sandboxctl apps' lists the apps")
    }
    self.app = app
    self.device = device
    self.container = container
  }

  /// The logical path of the inbox, or of a file in it.
  package func path(_ name: ByteString? = nil) -> ByteString {
    let path = container.logicalPrefix.appending(Self.documents).appending(Self.directory)
    return name.map(path.appending) ?? path
  }

  /// The directory `Documents`, opened without following a link.
  func documents() throws(SystemError) -> Directory {
    try Directory.open(resolved: container.absolutePath).directory(Self.documents)
  }

  /// The inbox, or nil if it does not exist.
  ///
  /// - Throws: `OperationError` if the inbox or `Documents` is a link or a file.
  func open() throws(OperationError) -> Directory? {
    do throws(SystemError) {
      return try documents().directory(Self.directory)
    } catch {
      let isAbsent = error.isMissing && !isOfAnotherKind
      if isAbsent { return nil }
      throw unusable(error)
    }
  }

  /// Opens the inbox; creates it and `Documents`, owned by the container's owner, if they do not
  /// exist.
  func make() throws(OperationError) -> Directory {
    do throws(SystemError) {
      let root = try Directory.open(resolved: container.absolutePath)
      let documents = try Self.make(Self.documents, in: root)
      return try Self.make(Self.directory, in: documents)
    } catch { throw unusable(error) }
  }

  /// The space on the inbox's volume or, if the inbox does not exist, on that of the container in
  /// which it would be created.
  func space() throws(OperationError) -> VolumeSpace {
    let directory = try open()
    do throws(SystemError) {
      guard let directory else {
        return try Directory.open(resolved: container.absolutePath).space()
      }
      return try directory.space()
    } catch { throw OperationError(error) }
  }

  private static func make(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) -> Directory {
    if try parent.statusIfPresent(name) == nil {
      try parent.createInherited(name, permissions: 0o755)
      try parent.sync()
    }
    return try parent.directory(name)
  }

  private func unusable(_ error: SystemError) -> OperationError {
    guard isOfAnotherKind else { return OperationError(error) }
    return OperationError(
      .failed, code: .invalidTarget, "open the inbox", subject: path(),
      reason: "it, or the directory above it, is a link or a file, and not a directory",
      hint: "move it away; the app can have put it there")
  }

  /// Whether the inbox, or the directory above it, is a link or a file.
  private var isOfAnotherKind: Bool {
    [Self.documents, Self.documents.appending(Self.directory)].contains { isNoDirectory($0) }
  }

  private func isNoDirectory(_ inner: ByteString) -> Bool {
    guard let root = try? Directory.open(resolved: container.absolutePath) else { return false }
    var cursor = DirectoryCursor(root: root)
    let status = try? cursor.withDirectory(at: inner.parent.components) {
      directory throws(SystemError) in
      try directory.statusIfPresent(inner.lastComponent ?? inner)
    }
    return (status ?? nil).map { $0.kind != .directory } ?? false
  }

  /// The processes that use files of the app.
  package var uses: [Processes.Use] {
    let paths = device.containers(of: app).map(\.absolutePath)
    return (try? Processes.using(below: paths) { _ in false })?.uses ?? []
  }

  /// Throws if a process uses files of the app.
  func requireIdle(_ action: String) throws(OperationError) {
    guard let use = uses.first else { return }
    throw OperationError(
      .busy, code: .appRunning, action, subject: path(),
      reason: "the app is running: process \(use.process) (\(use.name)) uses '\(use.file)'",
      hint: "end the app first")
  }
}

// MARK: - Changes

extension Inbox {
  /// The inbox, locked so that no other operation changes its app.
  struct Locked {
    let inbox: Inbox
    private let locks: AppLocks
    var notes: InboxNotes

    /// Locks the app and reads the notes. A delivery whose process was killed is finished if its
    /// file is in place; otherwise its note and its temporary file are removed.
    ///
    /// - Throws: `busy` if another operation changes the app.
    init(_ inbox: Inbox) throws(OperationError) {
      self.inbox = inbox
      locks = try AppLocks(
        [LogicalContainer.app(inbox.app.identifier)], root: inbox.device.root)
      notes = try inbox.notes()
      try settle()
    }

    /// The time in seconds for which the note about a file that no longer exists is kept: 90 days.
    private static let memory: Double = 90 * 24 * 3600

    private mutating func settle() throws(OperationError) {
      let pending = notes.notes.values.filter(\.isPending)
      guard let directory = try inbox.open() else { return }
      let now = Host.now()
      do throws(SystemError) {
        // Written with the next change.
        for note in notes.notes.values where now.since(note.time) > Self.memory {
          if try directory.statusIfPresent(note.name) == nil { notes[note.name] = nil }
        }
        for var note in pending {
          let status = try directory.statusIfPresent(note.name)
          note.isPending = false
          // A package is renamed as a whole.
          let isThere =
            note.isPackage
            ? status?.kind == .directory : status?.kind == .file && status?.size == note.size
          notes[note.name] = isThere ? note : nil
        }
        // The remains of killed runs. The directory of the trash stays, and so does a staging
        // directory: a restore may be using it, or its recovery may need it.
        for name in try directory.names()
        where AtomicFile.isTemporary(name) || TrashDirectory.isProbe(name) {
          try directory.removeTree(name)
        }
        if !pending.isEmpty { try write() }
      } catch { throw OperationError(error) }
    }

    /// Writes the notes durably.
    func write() throws(SystemError) {
      let directory = try ControlDirectory.make(ControlDirectory.inbox, root: inbox.device.root)
      try AtomicFile.write(notes.bytes, as: inbox.notesFile, in: directory, permissions: 0o600)
      try directory.inheritOwner(inbox.notesFile)
    }
  }

  /// The name of the file with the notes: the hash of the app's identifier.
  private var notesFile: ByteString {
    var hash = Blake2b()
    hash.update(Array(app.identifier.bytes.bytes))
    return ByteString(hash.finish().hex + ".json")
  }

  /// Reads the notes; none if there is no file.
  ///
  /// - Throws: `OperationError` if the file is damaged or cannot be trusted.
  func notes() throws(OperationError) -> InboxNotes {
    let bytes: [UInt8]?
    do throws(SystemError) {
      guard
        let directory = try ControlDirectory.open(ControlDirectory.inbox, root: device.root)
      else { return InboxNotes() }
      bytes = try ControlDirectory.read(notesFile, in: directory, limit: InboxNotes.limit)
    } catch { throw OperationError(error) }
    guard let bytes else { return InboxNotes() }
    guard let notes = InboxNotes(bytes) else {
      throw OperationError(
        .failed, code: .damaged, "read the notes about", subject: path(),
        reason: "the file '\(notesFile)' in '.sandboxctl/inbox' is damaged",
        hint: "remove it: the files of the inbox then count as not delivered by this program")
    }
    return notes
  }
}
