package import SystemIO

extension LocalStorage {
  /// Reads a complete file.
  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let bytes = try reading(path) { directory throws(SystemError) in
      try directory.file(path.name).readAll(limit: limit)
    }
    guard let bytes else {
      throw .damaged(path.description, "it exceeds the limit of \(limit) bytes")
    }
    return bytes
  }

  /// Reads a range of a file.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int
  ) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    try load(path, offset: offset, count: count, into: &bytes)
    return bytes
  }

  /// Reads a range of a file into a buffer, without other memory.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try reading(path) { directory throws(SystemError) in
      try directory.file(path.name).read(count: count, at: offset, into: &buffer)
    }
    guard buffer.count == count else {
      throw .damaged(path.description, "it ends before byte \(offset + UInt64(count))")
    }
  }

  /// Makes calls that read an object. If they fail because the disk lost it, or because a link, a
  /// pipe or a device has its name, the object is reported as damaged, so that work on other
  /// objects can continue.
  private func reading<Result>(
    _ path: ObjectPath, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do throws(SystemError) {
      return try body(try directory(path.directory))
    } catch {
      if error.isLoss {
        throw StoreError(
          .damaged, "read", subject: path.description, reason: error.reason, hint: error.hint,
          cause: error)
      }
      let found = try? directory(path.directory).statusIfPresent(path.name)
      guard let found, found.kind != .file else { throw failure(error) }
      throw .damaged(path.description, "it is not a regular file")
    }
  }

  /// Returns the names in a directory.
  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    try StoreError.wrap { () throws(SystemError) in try self.directory(directory).takeNames() }
  }

  /// Lists one directory at a time, through handles. Only one is open at any time.
  package func forEachObject(
    below root: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    var pending = [root]
    while let path = pending.popLast() {
      for (name, status) in try statuses(in: path, isRoot: path == root) {
        if status.isDirectory {
          pending.append(path.appending(name))
        } else {
          try body(path.appending(name), status)
        }
      }
    }
  }

  /// Returns the files and directories in a directory, or none if a directory below the root was
  /// removed in the meantime.
  private func statuses(
    in path: ObjectPath, isRoot: Bool
  ) throws(StoreError) -> [(name: ByteString, status: ObjectStatus)] {
    do throws(SystemError) {
      let directory = try directory(path)
      var found: [(name: ByteString, status: ObjectStatus)] = []
      for name in try directory.names() {
        guard let status = ObjectStatus(try directory.statusIfPresent(name)) else { continue }
        found.append((name, status))
      }
      return found
    } catch {
      if error.isMissing, !isRoot { return [] }
      throw .system(error)
    }
  }

  /// Returns the status of a file or directory. A link counts as missing.
  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    do {
      return ObjectStatus(try directory(path.directory).statusIfPresent(path.name))
    } catch {
      if error.isMissing { return nil }
      throw .system(error)
    }
  }

  /// Starts a file.
  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    do {
      return try LocalObjectWriter(storage: self, directory: directory)
    } catch { throw failure(error) }
  }

  /// Creates directories.
  package func makeDirectories(_ names: [ByteString], in path: ObjectPath) throws(StoreError) {
    do {
      let directory = try directory(path)
      for name in names { try directory.createDirectory(name, permissions: 0o700) }
      try directory.sync()
    } catch {
      guard error.isExisting else { throw failure(error) }
      throw StoreError(
        .notEmpty, "create the directory", subject: error.path.description,
        reason: "it already exists", cause: error)
    }
  }

  /// Updates the time of a file by a write that leaves it empty, so that the file system's clock is
  /// used.
  package func touch(_ path: ObjectPath) throws(StoreError) {
    try within(path) { directory throws(SystemError) in
      let file = try directory.openOrCreate(path.name, permissions: 0o600)
      try file.write([0])
      try file.truncate(to: 0)
    }
  }

  /// Renames an object and syncs both directories.
  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try within(path) { from throws(SystemError) in
      let to = try directory(target.directory)
      try from.rename(path.name, to: target.name, in: to)
      try to.sync()
      try from.sync()
    }
  }

  /// Removes a file or an empty directory.
  package func remove(_ path: ObjectPath) throws(StoreError) {
    try within(path) { directory throws(SystemError) in
      if try directory.status(path.name).kind == .directory {
        try directory.removeDirectory(path.name)
      } else {
        try directory.remove(path.name)
      }
    }
  }
}

extension ObjectStatus {
  /// Creates the status of a file or directory, or nil for any other type.
  fileprivate init?(_ status: FileStatus?) {
    guard let status, status.kind == .directory || status.kind == .file else { return nil }
    let isDirectory = status.kind == .directory
    self.init(
      isDirectory: isDirectory, size: isDirectory ? 0 : status.size, modified: status.modified)
  }
}
