internal import DeviceTransaction
internal import SandboxModel
package import SystemIO

extension Inbox {
  /// A file that was or will be moved.
  package struct Move: Sendable, Hashable {
    package let name: ByteString
    /// The logical path to which `claim` moved it, or nil if it is in the trash.
    package let target: ByteString?
    /// The size in bytes.
    package let size: UInt64

    /// Creates the move of a file to the trash.
    package init(toTrash file: InboxFile) {
      self.init(name: file.name, target: nil, size: file.size)
    }

    init(name: ByteString, target: ByteString?, size: UInt64) {
      (self.name, self.target, self.size) = (name, target, size)
    }
  }

  /// Moves files from the inbox to `Documents`, under free names, and makes them writable for their
  /// owner. A dry run needs no lock, and so no permission to write on the device.
  ///
  /// - Throws: `OperationError` if a name does not belong to a regular file or a package in the
  ///   inbox, or if the app is running. Then nothing is moved.
  package func claim(_ wanted: [ByteString], dryRun: Bool = false) throws(OperationError) -> [Move]
  {
    try requireIdle("claim files of")
    var locked: Locked?
    if !dryRun { locked = try Locked(self) }
    let inbox = try require(wanted)
    var moves: [Move] = []
    do throws(SystemError) {
      let documents = try documents()
      var free = try FreeName(in: documents)
      var seen: Set<ByteString> = []
      for name in wanted where seen.insert(name).inserted {
        let status = try inbox.status(name)
        let size = try size(of: name, status, in: inbox)
        let target = free.take(name)
        let path = container.logicalPrefix.appending(Self.documents).appending(target)
        let move = Move(name: name, target: path, size: size)
        if dryRun {
          moves.append(move)
          continue
        }
        try Self.move(name, status, from: inbox, to: documents, as: target)
        moves.append(move)
        locked?.notes[name] = nil
      }
      if dryRun { return moves }
      try documents.sync()
      try inbox.sync()
      try locked?.write()
      return moves
    } catch {
      if dryRun || moves.isEmpty { throw OperationError(error) }
      // Files moved before the error are no longer in the inbox, so the error names them.
      try? locked?.write()
      let names = moves.map { "'\($0.name)'" }.joined(separator: ", ")
      throw OperationError(
        .failed, code: error.code, "claim all files of", subject: path(), reason: error.reason,
        hint: "these are in Documents now: \(names)")
    }
  }

  /// Makes a file or package writable and moves it. A claim that is killed in between can be
  /// repeated: the file is still in the inbox. If it cannot be moved, the file gets its mode back,
  /// because a writable one counts as written to.
  private static func move(
    _ name: ByteString, _ status: FileStatus, from inbox: borrowing Directory,
    to documents: borrowing Directory, as target: ByteString
  ) throws(SystemError) {
    try permitWriting(name, status.kind, in: inbox)
    do throws(SystemError) {
      try inbox.add(name, to: documents, as: target)
    } catch {
      if status.kind == .file { try? setMode(status.permissions, of: name, in: inbox) }
      throw error
    }
  }

  /// Returns the size of a file, or the sum of the files of a package.
  private func size(
    of name: ByteString, _ status: FileStatus, in directory: borrowing Directory
  ) throws(SystemError) -> UInt64 {
    guard status.kind == .directory else { return status.size }
    return try PackageWalk.size(of: directory.directory(name)).bytes
  }

  /// Makes a file, or the files of a package, writable for their owner. Links are not followed.
  private static func permitWriting(
    _ name: ByteString, _ kind: FileKind, in directory: borrowing Directory
  ) throws(SystemError) {
    guard kind == .directory else { return try setMode(0o644, of: name, in: directory) }
    _ = try PackageWalk.run(directory.directory(name)) { path, status, inner throws(SystemError) in
      if status.kind == .file, status.permissions & 0o200 == 0 {
        let mode = status.permissions & 0o777 | 0o200
        try setMode(mode, of: path.lastComponent ?? path, in: inner)
      }
      return true
    }
  }

  /// Sets the mode of a file. For root, only if it belongs to the owner of the directory, who may
  /// have replaced it by a second name of another user's file.
  private static func setMode(
    _ mode: UInt16, of name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    guard Host.userID == 0 else { return try directory.setPermissions(mode, of: name) }
    let file = try directory.file(name)
    if try file.status().user == directory.status().user { try file.setPermissions(mode) }
  }

  /// Returns the inbox if all names belong to regular files or directories in it.
  private func require(_ wanted: [ByteString]) throws(OperationError) -> Directory {
    guard let inbox = try open() else {
      throw OperationError(
        .notFound, code: .notFound, "claim files of", subject: path(),
        reason: "the inbox does not exist: nothing was delivered")
    }
    for name in wanted {
      let status: FileStatus?
      do throws(SystemError) {
        let isName = name.nameFault == nil && !OwnNames.has(name)
        status = isName ? try inbox.statusIfPresent(name) : nil
      } catch { throw OperationError(error) }
      if status?.kind == .file || status?.kind == .directory { continue }
      throw OperationError(
        .notFound, code: .notFound, "claim", subject: path(name),
        reason: status == nil
          ? "there is no such file" : "it is neither a regular file nor a package",
        hint: "'sandboxctl interapp inbox list' lists the files")
    }
    return inbox
  }

  /// Returns the files that `clean` removes: those that are older than an age, in seconds, and were
  /// not written to, because a file that the app changed may contain the user's work.
  package func removable(olderThan age: Double) throws(OperationError) -> [InboxFile] {
    let now = Host.now()
    return try files().filter { file in
      (file.state == .unchanged || file.state == .unknown) && now.since(file.time) > age
    }
  }

  /// Moves files to the trash of the device.
  ///
  /// - Parameter age: See `removable(olderThan:)`; files that no longer match stay.
  /// - Returns: The moved files and the operation's ID in the trash, or nil if there are none.
  /// - Throws: `OperationError` if the app is running or a file cannot be moved; files moved before
  ///   the error are in the trash.
  package func clean(
    _ names: Set<ByteString>, olderThan age: Double
  ) throws(OperationError) -> (moves: [Move], operation: String?) {
    try requireIdle("clean")
    var locked = try Locked(self)
    let files = try removable(olderThan: age).filter { names.contains($0.name) }
    guard !files.isEmpty, let inbox = try open() else { return ([], nil) }
    let subject = LogicalContainer.app(app.identifier)
    let record = JournalRecord(
      operation: "inbox clean", time: Host.now(), subjects: [subject],
      containers: [container.logicalPrefix])
    do throws(SystemError) {
      let trash = try TrashDirectory(
        of: record, for: container.logicalPrefix, in: placeOfTrash(for: inbox), probing: inbox,
        root: device.root)
      for file in files {
        try trash.preserve(
          file.name, of: inbox, at: [Self.documents, Self.directory], leaving: true)
        locked.notes[file.name] = nil
      }
      try inbox.syncVolume()
      try locked.write()
    } catch { throw OperationError(error) }
    return (files.map { Move(toTrash: $0) }, record.id)
  }

  /// Returns the directory with the trash if the inbox is on another volume than the device's root:
  /// that of the container, because the app lists its inbox, unless the inbox is on a volume of its
  /// own.
  private func placeOfTrash(
    for inbox: borrowing Directory
  ) throws(SystemError) -> Directory {
    if try inbox.status().isMountPoint { return try inbox.duplicate() }
    let documents = try documents()
    if try documents.status().isMountPoint { return documents }
    return try Directory.open(resolved: container.absolutePath)
  }
}
