package import ArchiveStore
package import SystemIO

extension SFTPStorage {
  /// Starts an object.
  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try SFTPObjectWriter(self, in: directory)
  }

  /// Creates directories, all at once.
  ///
  /// If the connection was lost before the answers, an empty directory counts as created by this
  /// call: whether another program created it at the same moment is then unknown. `PruneLease`
  /// therefore also lists the owners that are in its directory.
  package func makeDirectories(
    _ names: [ByteString], in directory: ObjectPath
  ) throws(StoreError) {
    var existing: ObjectPath?
    do throws(SFTPFailure) {
      try session.perform { connection, isRepeated throws(SFTPFailure) in
        try requireDirectory(directory, connection)
        let paths = names.map { directory.appending($0) }
        let openings = openings(directory, connection)
        let replies = try connection.callAll(
          paths.map { .makeDirectory(serverPath($0), permissions: 0o700) }
            + openings.map { .open(path: serverPath($0), flags: .read, permissions: nil) })
        for (path, reply) in zip(openings, replies.dropFirst(paths.count)) {
          guard case .handle(let handle) = reply else { continue }
          connection.openFiles.keep(connection.file(handle), as: serverPath(path))
        }
        existing = nil
        for (path, reply) in zip(paths, replies) where existing == nil {
          if try isMade(path, reply, on: connection, isRepeated: isRepeated) {
            note([path])
          } else {
            existing = path
          }
        }
        try sync(directory, connection)
      }
    } catch { throw writeError(error, .createDirectory, at: directory) }
    guard let existing else { return }
    throw StoreError(
      .notEmpty, "create the directory", subject: "\(existing)", reason: "it already exists",
      cause: SystemError(.createDirectory, serverPath(existing), number: ErrorNumber.exists))
  }

  /// Whether a directory was created; false if it existed.
  private func isMade(
    _ path: ObjectPath, _ reply: SFTPReply, on connection: SFTPConnection, isRepeated: Bool
  ) throws(SFTPFailure) -> Bool {
    do throws(SFTPFailure) {
      try SFTPConnection.requireSuccess(reply)
      return true
    } catch {
      guard case .refused = error, !error.isMissing,
        let status = try connection.statusIfPresent(serverPath(path))
      else { throw error }
      guard isRepeated, status.kind == .directory else { return false }
      var isEmpty = true
      try connection.list([serverPath(path)]) { _, names in
        if !names.isEmpty { isEmpty = false }
      } failed: { _, failure throws(SFTPFailure) in
        throw failure
      }
      return isEmpty
    }
  }

  /// Updates the time of an object by a write that leaves it empty, so that the server's clock is
  /// used.
  package func touch(_ path: ObjectPath) throws(StoreError) {
    do throws(SFTPFailure) {
      try session.perform { connection, _ throws(SFTPFailure) in
        try requireDirectory(path.directory, connection)
        let name = serverPath(path)
        if let found = try connection.statusIfPresent(name), found.kind != .file,
          found.kind != .unknown
        {
          throw .unusable(SystemError(.write, name, number: ErrorNumber.link))
        }
        let handle = try connection.open(name, [.write, .create], permissions: 0o600)
        let replies = try connection.callAll([
          .write(handle, offset: 0, bytes: [0]), .setSize(handle, 0), .close(handle),
        ])
        try SFTPConnection.requireSuccess(replies[0])
        if case .refused = SFTPConnection.failure(replies[1]) {
          // A server may not allow sizes to be set, but it empties a file that it opens.
          _ = connection.file(try connection.open(name, [.write, .truncate]))
        } else {
          try SFTPConnection.requireSuccess(replies[1])
        }
        try SFTPConnection.requireSuccess(replies[2])
      }
    } catch { throw writeError(error, .write, at: path) }
  }

  /// Touches objects. Missing ones are created, all at once; the server gives a new file its
  /// current time. No link is followed in that case.
  package func touch(_ paths: [ObjectPath]) throws(StoreError) {
    var rest: [ObjectPath] = []
    do throws(SFTPFailure) {
      try session.perform { connection, _ throws(SFTPFailure) in
        for path in paths { try requireDirectory(path.directory, connection) }
        let replies = try connection.callAll(
          paths.map {
            .open(
              path: serverPath($0), flags: [.write, .create, .exclusive], permissions: 0o600)
          })
        rest = []
        for (path, reply) in zip(paths, replies) {
          if case .handle(let handle) = reply {
            _ = connection.file(handle)
          } else if case .refused = SFTPConnection.failure(reply) {
            rest.append(path)
          } else {
            throw SFTPConnection.failure(reply)
          }
        }
      }
    } catch { throw writeError(error, .write, at: paths.first ?? .root) }
    for path in rest { try touch(path) }
  }

  /// Renames an object or a directory, and syncs both directories.
  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    do throws(SFTPFailure) {
      try session.perform { connection, isRepeated throws(SFTPFailure) in
        try requireDirectory(path.directory, connection)
        try requireDirectory(target.directory, connection)
        let isDone = isRepeated ? try isMoved(path, to: target, connection) : false
        if !isDone { try move(path, to: target, connection) }
        try sync(target.directory, connection)
        if path.directory != target.directory { try sync(path.directory, connection) }
      }
    } catch { throw writeError(error, .rename, at: path) }
  }

  /// Moves objects, all at once.
  package func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool {
    do throws(SFTPFailure) {
      return try session.perform { connection, _ throws(SFTPFailure) in
        let missing = try missingDirectories(
          Set(moves.flatMap { [$0.path.directory, $0.target.directory] }), connection)
        let possible = moves.filter {
          !missing.contains($0.path.directory) && !missing.contains($0.target.directory)
        }
        return try renameAll(possible, connection) && possible.count == moves.count
      }
    } catch { throw writeError(error, .rename, at: moves.first?.path ?? .root) }
  }

  /// Renames objects without a sync. Returns whether none was missing.
  private func renameAll(
    _ moves: [ObjectMove], _ connection: SFTPConnection
  ) throws(SFTPFailure) -> Bool {
    var isWhole = true
    guard connection.has(.rename) else {
      for one in moves {
        do throws(SFTPFailure) {
          try move(one.path, to: one.target, connection)
        } catch {
          guard error.isMissing else { throw error }
          isWhole = false
        }
      }
      return isWhole
    }
    for move in moves { forget(move.path, connection) }
    let replies = try connection.callAll(
      moves.map { .renameReplacing(serverPath($0.path), to: serverPath($0.target)) })
    for reply in replies {
      do throws(SFTPFailure) {
        try SFTPConnection.requireSuccess(reply)
      } catch {
        guard error.isMissing else { throw error }
        isWhole = false
      }
    }
    return isWhole
  }

  /// Returns those of several directories that do not exist, after checking that the others are not
  /// links.
  private func missingDirectories(
    _ directories: Set<ObjectPath>, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> Set<ObjectPath> {
    let unknown = Array(Set(directories.flatMap { unchecked(downTo: $0) }))
    let replies = try connection.callAll(unknown.map { .status(serverPath($0)) })
    var missing: Set<ObjectPath> = []
    for (path, reply) in zip(unknown, replies) {
      do throws(SFTPFailure) {
        try requireDirectories([path], [reply])
      } catch {
        guard error.isMissing else { throw error }
        missing.insert(path)
      }
    }
    return missing
  }

  /// Whether a rename whose answer was lost was carried out.
  private func isMoved(
    _ path: ObjectPath, to target: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> Bool {
    guard try connection.statusIfPresent(serverPath(path)) == nil else { return false }
    return try connection.statusIfPresent(serverPath(target)) != nil
  }

  /// Moves an object or a directory. An object at `target` is replaced.
  ///
  /// Without `posix-rename@openssh.com` it is moved aside first, into the directory of `path`, and
  /// removed last. If the second step fails, it is moved back to its place.
  ///
  /// - Parameter directory: a directory to be synced by a request that follows at once.
  /// - Returns: the answer of that sync, or nil if it was not requested.
  @discardableResult
  func move(
    _ path: ObjectPath, to target: ObjectPath, _ connection: SFTPConnection,
    syncing directory: SFTPOpenFile? = nil
  ) throws(SFTPFailure) -> SFTPReply? {
    let (from, to) = (serverPath(path), serverPath(target))
    defer {
      forget(path, connection)
      forget(target, connection)
    }
    if connection.has(.rename) {
      var requests = [SFTPRequest.renameReplacing(from, to: to)]
      if let directory { requests.append(.sync(directory.handle)) }
      let replies = try connection.callAll(requests)
      try SFTPConnection.requireSuccess(replies[0])
      return replies.dropFirst().first
    }
    try moveWithoutReplacing(path, to: target, connection)
    return nil
  }

  private func moveWithoutReplacing(
    _ path: ObjectPath, to target: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) {
    let (from, to) = (serverPath(path), serverPath(target))
    do throws(SFTPFailure) {
      return try connection.perform(.rename(from, to: to))
    } catch {
      guard error.code == .failure, try connection.statusIfPresent(from) != nil,
        try connection.statusIfPresent(to)?.kind == .file
      else { throw error }
    }
    let aside = serverPath(temporary(in: path.directory))
    try connection.perform(.rename(to, to: aside))
    do throws(SFTPFailure) {
      try connection.perform(.rename(from, to: to))
    } catch {
      if case .refused = error { try connection.perform(.rename(aside, to: to)) }
      throw error
    }
    try connection.perform(.remove(aside))
  }

  /// Removes an object or an empty directory.
  package func remove(_ path: ObjectPath) throws(StoreError) {
    do throws(SFTPFailure) {
      try session.perform { connection, isRepeated throws(SFTPFailure) in
        try requireDirectory(path.directory, connection)
        forget(path, connection)
        // Both at once: only one of them can succeed, for a file or for an empty directory.
        let name = serverPath(path)
        let replies = try connection.callAll([.remove(name), .removeDirectory(name)])
        if replies.contains(where: \.isSuccess) { return }
        do throws(SFTPFailure) {
          try SFTPConnection.requireSuccess(replies[0])
        } catch {
          // The first attempt, whose answer was lost, has removed it.
          if error.isMissing, isRepeated { return }
          guard case .refused = error, !error.isMissing else { throw error }
          try removeDirectory(path, or: error, connection)
        }
      }
    } catch { throw writeError(error, .remove, at: path) }
  }

  /// Removes a directory, or throws the failure of its removal as a file if it is not one.
  private func removeDirectory(
    _ path: ObjectPath, or failure: SFTPFailure, _ connection: SFTPConnection
  ) throws(SFTPFailure) {
    let name = serverPath(path)
    guard try connection.statusIfPresent(name)?.kind == .directory else { throw failure }
    do throws(SFTPFailure) {
      try connection.perform(.removeDirectory(name))
    } catch {
      guard error.code == .failure else { throw error }
      throw .unusable(SystemError(.remove, name, number: ErrorNumber.notEmpty))
    }
  }

  /// Removes objects, many at once. Missing ones are ignored. The last may be a directory that is
  /// then empty: a server processes requests in order, and one that does not is asked again.
  package func remove(_ paths: [ObjectPath]) throws(StoreError) {
    do throws(SFTPFailure) {
      try session.perform { connection, _ throws(SFTPFailure) in
        var names: [ByteString] = []
        for path in paths {
          do throws(SFTPFailure) {
            try requireDirectory(path.directory, connection)
          } catch {
            guard error.isMissing else { throw error }
            continue
          }
          forget(path, connection)
          names.append(serverPath(path))
        }
        guard let last = names.last else { return }
        var replies = try connection.callAll(names.map { .remove($0) } + [.removeDirectory(last)])
        let isDirectoryGone = replies.removeLast().isSuccess
        if isDirectoryGone { replies.removeLast() }
        for reply in replies {
          do throws(SFTPFailure) {
            try SFTPConnection.requireSuccess(reply)
          } catch { if !error.isMissing { throw error } }
        }
      }
    } catch { throw writeError(error, .remove, at: paths.first ?? .root) }
  }
}
