package import ArchiveStore
internal import Codecs
internal import Synchronization
package import SystemIO

/// The storage of a repository as files below a directory of a server, through SFTP.
///
/// An object appears under its name by a rename after its content is on the server's disk
/// (`fsync@openssh.com`), and the rename is made durable by a sync of the directory, as in
/// `LocalStorage`. Directories get mode 0700, files 0600. A lost connection is reestablished, and
/// operations in progress continue (`SFTPSession`).
///
/// Limits of the protocol, and how they are handled:
/// - Links below the root are not followed, but only as far as their absence before the call shows
///   it: every component is checked once, and the last one each time. SFTP has no way to open a
///   path without following links.
/// - Times have whole seconds.
/// - Without `posix-rename@openssh.com` an existing object is moved aside before it is replaced:
///   until the next request it is missing under its name.
/// - Without `fsync@openssh.com` a committed object may be incomplete after a crash of the server.
///   `warnings` says so.
package final class SFTPStorage: WarningStorage {
  let session: SFTPSession
  /// The directory on the server: absolute, or relative to where the server starts.
  let root: ByteString
  /// The text of the location, for messages.
  package let location: String
  private let state = Mutex(State())
  private let unfinished = Atomic<Int>(0)
  /// A part of the names of unfinished objects, so that those of two programs differ.
  private let sign = Host.randomHex(bytes: 4)

  private struct State {
    /// The directories that are known not to be links.
    var checked: Set<ObjectPath> = []
    /// Whether directories can be synced: nil until it was attempted.
    var syncsDirectories: Bool?
    var warnings: [String] = []
  }

  /// The maximum number of directories that are remembered.
  private static let checkedLimit = 4096

  /// Opens the storage in an existing directory of a server.
  ///
  /// - Throws: `noRepository` if there is no such directory; `system` if the server cannot be
  ///   reached, refuses the login, or has another host key than the known one.
  package convenience init(
    _ location: SFTPLocation, options: SFTPOptions = SFTPOptions()
  ) throws(StoreError) {
    try self.init(
      SFTPConnector(location, program: options.sshCommand), path: location.path,
      location: location.text.description, options: options)
    try requireRoot()
  }

  /// Opens the storage in a directory, and creates it with its parents if it is missing. A new
  /// directory gets mode 0700, and so does an existing empty one if the server allows it.
  package static func create(
    _ location: SFTPLocation, options: SFTPOptions = SFTPOptions()
  ) throws(StoreError) -> SFTPStorage {
    let storage = try SFTPStorage(
      SFTPConnector(location, program: options.sshCommand), path: location.path,
      location: location.text.description, options: options)
    try storage.createRoot()
    return storage
  }

  /// Connects to a server. Whether the directory exists is not checked.
  init(
    _ connector: SFTPConnector, path: ByteString, location: String, options: SFTPOptions
  ) throws(StoreError) {
    session = SFTPSession(connector, options)
    root = path.isEmpty ? "." : path
    self.location = location
    let version = try perform(.open, at: .root) { connection, _ in connection.version }
    noteMissing(version)
  }

  /// Always true: version 3 of the protocol has renames.
  package var canRename: Bool { true }

  /// The possible costs of a crash of this server, each in one sentence. Complete once something
  /// was written.
  package var warnings: [String] { state.withLock { $0.warnings } }

  /// Returns the space of the server's volume, or nil if the server does not report it.
  package func space() throws(StoreError) -> VolumeSpace? {
    try perform(.space, at: .root) { connection, _ throws(SFTPFailure) in
      try self.space(connection)
    }
  }

  func space(_ connection: SFTPConnection) throws(SFTPFailure) -> VolumeSpace? {
    guard connection.has(.space) else { return nil }
    guard case .extended(let fields) = try connection.call(.space(root)) else { return nil }
    do { return try VolumeSpace(statvfs: fields) } catch { throw SFTPFailure(error) }
  }

  /// Ends the connection. A later call makes a new one.
  package func close() { session.close() }
}

// MARK: - Paths

extension SFTPStorage {
  /// Returns the path of an object on the server.
  func serverPath(_ path: ObjectPath) -> ByteString {
    root.appending(ByteString(joining: path.components))
  }

  /// Returns a path for an unfinished object in a directory, which no other one has.
  func temporary(in directory: ObjectPath) -> ObjectPath {
    let number = unfinished.add(1, ordering: .relaxed).newValue
    return directory.appending(ByteString("unfinished-\(sign)-\(number)"))
  }

  /// Checks that a path below the root and everything above it are directories, not links to
  /// directories. Each is checked once.
  func requireDirectory(
    _ path: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) {
    let unknown = unchecked(downTo: path)
    if unknown.isEmpty { return }
    let replies = try connection.callAll(unknown.map { .status(serverPath($0)) })
    try requireDirectories(unknown, replies)
  }

  /// Returns the directories down to a path that were not checked yet, the outermost first.
  func unchecked(downTo path: ObjectPath) -> [ObjectPath] {
    let chain = path.components.indices.map { Self.prefix(of: path, count: $0 + 1) }
    return state.withLock { state in chain.filter { !state.checked.contains($0) } }
  }

  /// Checks the statuses of directories that were not checked yet.
  func requireDirectories(
    _ unknown: [ObjectPath], _ replies: [SFTPReply]
  ) throws(SFTPFailure) {
    for (path, reply) in zip(unknown, replies) {
      let attributes: SFTPAttributes
      do throws(SFTPFailure) {
        attributes = try SFTPConnection.attributes(reply)
      } catch {
        guard error.isMissing else { throw error }
        throw .unusable(SystemError(.open, serverPath(path), number: ErrorNumber.missing))
      }
      guard attributes.kind == .directory || attributes.kind == .unknown else {
        throw .unusable(SystemError(.open, serverPath(path), number: ErrorNumber.notDirectory))
      }
    }
    note(unknown)
  }

  /// Remembers directories that are not links.
  func note(_ directories: [ObjectPath]) {
    state.withLock { state in
      if state.checked.count + directories.count > Self.checkedLimit { state.checked = [] }
      state.checked.formUnion(directories)
    }
  }

  private static func prefix(of path: ObjectPath, count: Int) -> ObjectPath {
    path.components.prefix(count).reduce(.root) { $0.appending($1) }
  }

  /// Forgets what is known about a path that was renamed or removed, and everything below it.
  func forget(_ path: ObjectPath, _ connection: SFTPConnection) {
    connection.openFiles.drop(serverPath(path))
    state.withLock { state in
      state.checked = state.checked.filter { !$0.components.starts(with: path.components) }
    }
  }
}

// MARK: - Durability

extension SFTPStorage {
  /// Records what a server lacks.
  private func noteMissing(_ version: SFTPVersion) {
    if !version.extensions.contains(.sync) {
      warn(
        "the SFTP server at '\(location)' cannot sync files (fsync@openssh.com): if it crashes or "
          + "loses power, the last stored objects may be incomplete; run 'sandboxctl check' in "
          + "that case")
    }
    if !version.extensions.contains(.rename) {
      warn(
        "the SFTP server at '\(location)' cannot replace files in one step "
          + "(posix-rename@openssh.com): if it crashes or the connection ends meanwhile, an object "
          + "that is being replaced may be missing; run 'sandboxctl check' in that case")
    }
  }

  private func warn(_ text: String) {
    state.withLock { state in if !state.warnings.contains(text) { state.warnings.append(text) } }
  }

  /// Returns an open directory to be synced, or nil if the server cannot sync directories.
  ///
  /// OpenSSH opens a directory like a file for reading, and syncs it. For other servers, and for
  /// file systems that cannot sync directories, the first attempt shows it, which is made with the
  /// root.
  func syncable(
    _ directory: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> SFTPOpenFile? {
    guard connection.has(.sync), try canSyncDirectories(connection) else { return nil }
    return try opened(directory, connection)
  }

  /// Syncs a directory, if the server can.
  func sync(_ directory: ObjectPath, _ connection: SFTPConnection) throws(SFTPFailure) {
    if try syncFirst(directory, connection) { return }
    guard let open = try syncable(directory, connection) else { return }
    try connection.perform(.sync(open.handle))
  }

  /// Syncs an open directory together with the root, which shows whether the server can. Returns
  /// false if that is known, or if one of them is not open.
  private func syncFirst(
    _ directory: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> Bool {
    guard directory != .root, state.withLock({ $0.syncsDirectories }) == nil,
      let root = connection.openFiles.find(serverPath(.root)),
      let open = connection.openFiles.find(serverPath(directory))
    else { return false }
    let replies = try connection.callAll([.sync(root.handle), .sync(open.handle)])
    let can = try noteSyncs { () throws(SFTPFailure) in
      try SFTPConnection.requireSuccess(replies[0])
    }
    if can { try SFTPConnection.requireSuccess(replies[1]) }
    return true
  }

  private func canSyncDirectories(_ connection: SFTPConnection) throws(SFTPFailure) -> Bool {
    if let known = state.withLock({ $0.syncsDirectories }) { return known }
    return try noteSyncs { () throws(SFTPFailure) in
      try connection.perform(.sync(try opened(.root, connection).handle))
    }
  }

  /// Records whether a sync of the root succeeds, and so whether directories can be synced.
  private func noteSyncs(_ sync: () throws(SFTPFailure) -> Void) throws(SFTPFailure) -> Bool {
    var can = true
    do throws(SFTPFailure) {
      try sync()
    } catch {
      guard case .refused = error else { throw error }
      can = false
      warn(
        "the SFTP server at '\(location)' cannot sync directories: if it crashes or loses power, "
          + "the last stored objects may be missing; run 'sandboxctl check' in that case")
    }
    state.withLock { $0.syncsDirectories = can }
    return can
  }

  /// Returns the directories to be opened before a directory is synced: it and, before it is known
  /// whether directories can be synced, the root. They are opened with other requests, so that the
  /// sync does not wait for that.
  func openings(_ directory: ObjectPath, _ connection: SFTPConnection) -> [ObjectPath] {
    guard connection.has(.sync) else { return [] }
    let known = state.withLock { $0.syncsDirectories }
    if known == false { return [] }
    let wanted = known == nil && directory != .root ? [.root, directory] : [directory]
    return wanted.filter { connection.openFiles.find(serverPath($0)) == nil }
  }

  private func opened(
    _ directory: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> SFTPOpenFile {
    let path = serverPath(directory)
    if let open = connection.openFiles.find(path) { return open }
    let open = connection.file(try connection.open(path, .read))
    connection.openFiles.keep(open, as: path)
    return open
  }
}

// MARK: - The root

extension SFTPStorage {
  /// The status of the root, with a link followed, or nil if it does not exist.
  private func rootStatus(_ connection: SFTPConnection) throws(SFTPFailure) -> SFTPAttributes? {
    do {
      return try SFTPConnection.attributes(try connection.call(.followedStatus(root)))
    } catch {
      guard error.isMissing else { throw error }
      return nil
    }
  }

  /// Checks that the root is a directory. The directories of a repository in it are checked in the
  /// same round trip, so that their first uses do not wait.
  func requireRoot() throws(StoreError) {
    let status: SFTPAttributes? = try perform(.open, at: .root) {
      connection, _ throws(SFTPFailure) in
      let directories = Repository.directories.map { ObjectPath.root.appending($0) }
      let replies = try connection.callAll(
        [.followedStatus(root)] + directories.map { .status(serverPath($0)) })
      for (path, reply) in zip(directories, replies.dropFirst()) {
        if case .attributes(let found) = reply, found.kind == .directory { note([path]) }
      }
      do throws(SFTPFailure) {
        return try SFTPConnection.attributes(replies[0])
      } catch {
        guard error.isMissing else { throw error }
        return nil
      }
    }
    let reason: String
    switch status?.kind {
    case .directory, .unknown: return
    case nil: reason = "no such directory on the server"
    default: reason = "it is not a directory"
    }
    throw StoreError(
      .noRepository, "open the repository", subject: location, reason: reason,
      hint: StoreError.absentHint(isLocal: false),
      cause: SystemError(.open, root, number: ErrorNumber.missing))
  }

  func createRoot() throws(StoreError) {
    do throws(SFTPFailure) {
      try session.perform { connection, _ throws(SFTPFailure) in try createRoot(connection) }
    } catch {
      let failure = storeError(error, .createDirectory, at: .root)
      throw StoreError(
        failure.code == .missing ? .system : failure.code, "create the repository",
        subject: location, reason: failure.reason, hint: failure.hint, cause: failure.cause)
    }
  }

  private func createRoot(_ connection: SFTPConnection) throws(SFTPFailure) {
    guard let status = try rootStatus(connection) else {
      return try makeDirectory(root, connection)
    }
    guard status.kind == .directory || status.kind == .unknown else {
      throw .unusable(SystemError(.createDirectory, root, number: ErrorNumber.exists))
    }
    var isEmpty = true
    try connection.list([root]) { _, names in
      if !names.isEmpty { isEmpty = false }
    } failed: { _, failure throws(SFTPFailure) in
      throw failure
    }
    guard isEmpty else { return }
    do throws(SFTPFailure) {
      try connection.perform(.setPermissions(path: root, 0o700))
    } catch { if error.code == nil { throw error } }
  }

  /// Creates a directory and the missing ones above it, and syncs the name of each.
  private func makeDirectory(
    _ path: ByteString, _ connection: SFTPConnection
  ) throws(SFTPFailure) {
    let request = SFTPRequest.makeDirectory(path, permissions: 0o700)
    do throws(SFTPFailure) {
      try connection.perform(request)
    } catch {
      let parent = path.parent
      guard error.isMissing, !parent.isEmpty, parent != "/" else { throw error }
      try makeDirectory(parent, connection)
      try connection.perform(request)
    }
    guard connection.has(.sync) else { return }
    do throws(SFTPFailure) {
      let open = connection.file(try connection.open(path.dirname, .read))
      try connection.perform(.sync(open.handle))
    } catch {
      // A user may lack permission to read a directory above the repository.
      if error.code == nil { throw error }
    }
  }
}
