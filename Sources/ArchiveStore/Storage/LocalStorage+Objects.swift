public import SystemIO

extension LocalStorage {
  /// Gives a whole file.
  public func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let bytes = try reading(path) { folder throws(SystemError) in
      try folder.file(path.name).readAll(limit: limit)
    }
    guard let bytes else {
      throw .damaged(path.description, "it is larger than the \(limit) bytes it may have")
    }
    return bytes
  }

  /// Gives a range of a file.
  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int
  ) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    try load(path, offset: offset, count: count, into: &bytes)
    return bytes
  }

  /// Puts a range of a file into a buffer, without other memory.
  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try reading(path) { folder throws(SystemError) in
      try folder.file(path.name).read(count: count, at: offset, into: &buffer)
    }
    guard buffer.count == count else {
      throw .damaged(path.description, "it ends before byte \(offset + UInt64(count))")
    }
  }

  /// Runs calls that read an object. Where they fail because the disk has lost it, or because there
  /// is a link, a pipe or a device in its place, the object is damaged: that costs what it holds, and
  /// not the work on the others.
  private func reading<Result>(
    _ path: ObjectPath, _ body: (borrowing Folder) throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do throws(SystemError) {
      return try body(try folder(path.folder))
    } catch {
      if error.isLoss {
        throw StoreError(
          .damaged, "read", path.description, error.reason, hint: error.hint, cause: error)
      }
      let found = try? folder(path.folder).statusIfPresent(path.name)
      guard let found, found.kind != .file else { throw failure(error) }
      throw .damaged(path.description, "it is not a regular file")
    }
  }

  /// Gives the names in a folder.
  public func list(_ folder: ObjectPath) throws(StoreError) -> [ByteString] {
    try StoreError.wrap { () throws(SystemError) in try self.folder(folder).takeNames() }
  }

  /// Lists folder by folder, through handles; no more than one is open.
  public func forEachObject(
    below root: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    var pending = [root]
    while let path = pending.popLast() {
      for (name, status) in try statuses(in: path, isRoot: path == root) {
        if status.isFolder {
          pending.append(path.appending(name))
        } else {
          try body(path.appending(name), status)
        }
      }
    }
  }

  /// The files and folders in a folder; none where one below the root was removed meanwhile.
  private func statuses(
    in path: ObjectPath, isRoot: Bool
  ) throws(StoreError) -> [(name: ByteString, status: ObjectStatus)] {
    do throws(SystemError) {
      let folder = try folder(path)
      var found: [(name: ByteString, status: ObjectStatus)] = []
      for name in try folder.names() {
        guard let status = ObjectStatus(try folder.statusIfPresent(name)) else { continue }
        found.append((name, status))
      }
      return found
    } catch {
      if error.isMissing, !isRoot { return [] }
      throw .system(error)
    }
  }

  /// Tells what a file or folder is. A link is neither, so it counts as missing.
  public func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    do {
      return ObjectStatus(try folder(path.folder).statusIfPresent(path.name))
    } catch {
      if error.isMissing { return nil }
      throw .system(error)
    }
  }

  /// Begins a file.
  public func startObject(in folder: ObjectPath) throws(StoreError) -> any ObjectWriter {
    do {
      return try LocalObjectWriter(storage: self, folder: folder)
    } catch { throw failure(error) }
  }

  /// Makes folders.
  public func makeFolders(_ names: [ByteString], in path: ObjectPath) throws(StoreError) {
    do {
      let folder = try folder(path)
      for name in names { try folder.createFolder(name, permissions: 0o700) }
      try folder.sync()
    } catch {
      guard error.isExisting else { throw failure(error) }
      throw StoreError(
        .notEmpty, "make the folder", error.path.description, "it exists already", cause: error)
    }
  }

  /// Writes nothing into a file in a way that moves its time: by the file system's own clock.
  public func touch(_ path: ObjectPath) throws(StoreError) {
    try within(path) { folder throws(SystemError) in
      let file = try folder.openOrCreate(path.name, permissions: 0o600)
      try file.write([0])
      try file.truncate(to: 0)
    }
  }

  /// Renames and makes both folders durable.
  public func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try within(path) { from throws(SystemError) in
      let to = try folder(target.folder)
      try from.rename(path.name, to: target.name, in: to)
      try to.sync()
      try from.sync()
    }
  }

  /// Removes a file or an empty folder.
  public func remove(_ path: ObjectPath) throws(StoreError) {
    try within(path) { folder throws(SystemError) in
      if try folder.status(path.name).kind == .directory {
        try folder.removeFolder(path.name)
      } else {
        try folder.remove(path.name)
      }
    }
  }
}

extension ObjectStatus {
  /// The status of a file or folder; nil for anything else.
  fileprivate init?(_ status: FileStatus?) {
    guard let status, status.kind == .directory || status.kind == .file else { return nil }
    let isFolder = status.kind == .directory
    self.init(isFolder: isFolder, size: isFolder ? 0 : status.size, modified: status.modified)
  }
}
