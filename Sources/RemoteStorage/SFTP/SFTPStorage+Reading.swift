package import ArchiveStore
internal import Codecs
package import SystemIO

extension SFTPStorage {
  /// Reads a complete object.
  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    let isWhole = try reading(path) { connection, _ throws(SFTPFailure) in
      let (file, attributes) = try openForReading(path, connection)
      // If a server omits the size, more is requested than fits.
      let size = attributes.size ?? UInt64(limit) + 1
      guard attributes.size == nil || size <= UInt64(limit) else { return false }
      try connection.read(file.handle, offset: 0, count: Int(clamping: size), into: &bytes)
      return bytes.count <= limit
    }
    guard isWhole else { throw damaged(path, "it exceeds the limit of \(limit) bytes") }
    return bytes
  }

  /// Reads a range of an object into a buffer. The file stays open for further ranges.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    try reading(path) { connection, _ throws(SFTPFailure) in
      let name = serverPath(path)
      if let file = connection.openFiles.find(name) {
        try requireDirectory(path.directory, connection)
        do throws(SFTPFailure) {
          return try connection.read(file.handle, offset: offset, count: count, into: &buffer)
        } catch {
          guard case .refused = error else { throw error }
          connection.openFiles.drop(name)
        }
      }
      let (file, _) = try openForReading(path, connection)
      connection.openFiles.keep(file, as: name)
      try connection.read(file.handle, offset: offset, count: count, into: &buffer)
    }
    guard buffer.count == count else {
      throw damaged(path, "it ends before byte \(offset &+ UInt64(count))")
    }
  }

  /// Makes calls that read an object. If the server cannot read it, or if a link, a pipe or a
  /// device has its name, it is reported as damaged, so that work on other objects can continue.
  private func reading<Result>(
    _ path: ObjectPath, _ body: (SFTPConnection, Bool) throws(SFTPFailure) -> Result
  ) throws(StoreError) -> Result {
    do throws(SFTPFailure) {
      return try session.perform(body)
    } catch {
      if case .unusable(let cause) = error, !cause.isMissing {
        throw damaged(path, "it is not a regular file")
      }
      if error.code == .permissionDenied { throw readRefusal(error, at: path) }
      guard error.code == .failure else { throw storeError(error, .read, at: path) }
      throw damaged(path, "the server cannot read it")
    }
  }

  /// Opens an object, and returns its status. Both are requested at once, together with those of
  /// the directories above it that were not checked yet.
  private func openForReading(
    _ path: ObjectPath, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> (file: SFTPOpenFile, attributes: SFTPAttributes) {
    let name = serverPath(path)
    let exchange = connection.exchange()
    let unknown = unchecked(downTo: path.directory)
    let above = try unknown.map { directory throws(SFTPFailure) in
      try exchange.send(.status(serverPath(directory)))
    }
    let status = try exchange.send(.status(name))
    let open = try exchange.send(.open(path: name, flags: .read, permissions: nil))
    let directories = try above.map { id throws(SFTPFailure) in try exchange.anyAnswer(id) }
    let found = try exchange.anyAnswer(status)
    if case .attributes(let attributes) = found, attributes.kind == .other {
      // A server that opens a pipe waits for its writer, and answers nothing more.
      connection.abandon("a server was waiting for '\(name)', which is not a file")
      throw .unusable(SystemError(.open, name, number: ErrorNumber.invalid))
    }
    let opened = try exchange.anyAnswer(open)
    let file: SFTPOpenFile?
    if case .handle(let handle) = opened { file = connection.file(handle) } else { file = nil }
    try requireDirectories(unknown, directories)
    let attributes = try SFTPConnection.attributes(found)
    guard attributes.kind == .file || attributes.kind == .unknown else {
      throw .unusable(SystemError(.open, name, number: ErrorNumber.link))
    }
    guard let file else { throw SFTPConnection.failure(opened) }
    return (file, attributes)
  }

  /// Returns the digest of a file, or nil if it has another size.
  func digest(
    _ path: ByteString, size: UInt64, _ connection: SFTPConnection
  ) throws(SFTPFailure) -> Digest? {
    let attributes = try connection.statusIfPresent(path)
    guard attributes?.kind == .file, attributes?.size == size else { return nil }
    let file = connection.file(try connection.open(path, .read))
    var hash = Blake2b()
    var (offset, bytes) = (UInt64(0), [UInt8]())
    while offset < size {
      let count = Int(min(size - offset, 4 << 20))
      try connection.read(file.handle, offset: offset, count: count, into: &bytes)
      guard bytes.count == count else { return nil }
      hash.update(bytes)
      offset += UInt64(count)
    }
    return hash.finish()
  }
}

// MARK: - Listing

extension SFTPStorage {
  /// The maximum depth of directories below a listed one.
  private static let depthLimit = 64

  /// Returns the names in a directory.
  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    try perform(.list, at: directory) { connection, _ throws(SFTPFailure) in
      try requireDirectory(directory, connection)
      var found: [ByteString] = []
      try connection.list([serverPath(directory)]) { _, names in
        found += names.map(\.name)
      } failed: { _, failure throws(SFTPFailure) in
        throw failure
      }
      return found.sorted()
    }
  }

  /// Lists directories at once, with the sizes and times if the server shows them.
  package func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?] {
    try perform(.list, at: .root) { connection, _ throws(SFTPFailure) in
      var found: [DirectoryListing?] = []
      var present: [Int] = []
      for (number, directory) in directories.enumerated() {
        found.append(nil)
        do throws(SFTPFailure) {
          try requireDirectory(directory, connection)
          present.append(number)
        } catch { if !error.isMissing { throw error } }
      }
      var entries = [[SFTPName]](repeating: [], count: present.count)
      for number in present { found[number] = DirectoryListing(names: []) }
      try connection.list(present.map { serverPath(directories[$0]) }) { index, names in
        entries[index] += names
      } failed: { index, failure throws(SFTPFailure) in
        guard failure.isMissing else { throw failure }
        found[present[index]] = nil
      }
      for (index, number) in present.enumerated() where found[number] != nil {
        found[number] = Self.listing(of: entries[index])
        // The server lists links as links, so these need no separate check.
        note(
          entries[index].filter { $0.attributes.kind == .directory }.map {
            directories[number].appending($0.name)
          })
      }
      return found
    }
  }

  private static func listing(of entries: [SFTPName]) -> DirectoryListing {
    var statuses: [ByteString: ObjectStatus]? = [:]
    for entry in entries {
      switch status(entry.attributes) {
      case .some(.some(let status)): statuses?[entry.name] = status
      case .some(.none): break
      case .none: statuses = nil
      }
    }
    return DirectoryListing(names: entries.map(\.name).sorted(), statuses: statuses)
  }

  /// Lists several directories at a time. Sizes and times are those of the listing.
  package func forEachObject(
    below root: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    try perform(.list, at: root) { connection, _ throws(SFTPFailure) in
      try requireDirectory(root, connection)
    }
    try forEachObject(in: [root], root: root, body)
  }

  /// Lists the directories and those in them, several at a time.
  package func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    let present = try perform(.list, at: .root) { connection, _ throws(SFTPFailure) in
      var present: [ObjectPath] = []
      for directory in directories {
        do throws(SFTPFailure) {
          try requireDirectory(directory, connection)
          present.append(directory)
        } catch { if !error.isMissing { throw error } }
      }
      return present
    }
    try forEachObject(in: present, root: nil, body)
  }

  /// - Parameter root: a directory that must not be removed meanwhile, and above all others.
  private func forEachObject(
    in directories: [ObjectPath], root: ObjectPath?,
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    var pending = directories
    while !pending.isEmpty {
      let batch = Array(pending.suffix(SFTPConnection.listWindow))
      pending.removeLast(batch.count)
      for (path, status) in try statuses(in: batch, below: root) {
        if status.isDirectory {
          pending.append(path)
        } else {
          try body(path, status)
        }
      }
    }
  }

  /// Returns the files and directories in directories. Those that were removed in the meantime have
  /// none, other than the first one.
  private func statuses(
    in directories: [ObjectPath], below root: ObjectPath?
  ) throws(StoreError) -> [(ObjectPath, ObjectStatus)] {
    try perform(.list, at: directories.first ?? .root) { connection, _ throws(SFTPFailure) in
      var found: [(ObjectPath, ObjectStatus)] = []
      var incomplete: [ObjectPath] = []
      try connection.list(directories.map { serverPath($0) }) { index, names in
        for name in names {
          let path = directories[index].appending(name.name)
          switch Self.status(name.attributes) {
          case .some(.some(let status)): found.append((path, status))
          case .some(.none): break
          case .none: incomplete.append(path)
          }
        }
      } failed: { index, failure throws(SFTPFailure) in
        if !failure.isMissing || directories[index] == root { throw failure }
      }
      let replies = try connection.callAll(incomplete.map { .status(serverPath($0)) })
      for (path, reply) in zip(incomplete, replies) {
        guard case .attributes(let attributes) = reply else { continue }
        if let status = Self.knownStatus(attributes) { found.append((path, status)) }
      }
      let isTooDeep = found.contains {
        $0.0.components.count > (root?.components.count ?? 0) + Self.depthLimit
      }
      if isTooDeep { throw SFTPFailure(SFTPViolation(reason: "it lists directories without end")) }
      return found
    }
  }

  /// Returns the status of an entry, `.some(nil)` for one that is neither a file nor a directory,
  /// or nil if the server did not report enough.
  private static func status(_ attributes: SFTPAttributes) -> ObjectStatus?? {
    if attributes.kind == .unknown || attributes.modified == nil { return nil }
    if attributes.kind == .file, attributes.size == nil { return nil }
    return .some(knownStatus(attributes))
  }

  private static func knownStatus(_ attributes: SFTPAttributes) -> ObjectStatus? {
    let isDirectory = attributes.kind == .directory
    guard isDirectory || attributes.kind == .file || attributes.kind == .unknown else { return nil }
    return ObjectStatus(
      isDirectory: isDirectory, size: isDirectory ? 0 : attributes.size ?? 0,
      modified: Timestamp(seconds: Int64(attributes.modified ?? 0)))
  }

  /// Returns the status of an object or directory. A link counts as missing.
  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try perform(.status, at: path) { connection, _ throws(SFTPFailure) in
      do throws(SFTPFailure) {
        try requireDirectory(path.directory, connection)
        if path.components.isEmpty {
          let reply = try connection.call(.followedStatus(root))
          return Self.knownStatus(try SFTPConnection.attributes(reply))
        }
        return try connection.statusIfPresent(serverPath(path)).flatMap(Self.knownStatus)
      } catch {
        guard error.isMissing else { throw error }
        return nil
      }
    }
  }
}
