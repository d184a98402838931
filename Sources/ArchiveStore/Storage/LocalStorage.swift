internal import Codecs
internal import Synchronization
public import SystemIO

/// The storage of a repository as files below one directory, local or mounted.
///
/// All calls use directory handles and follow no link below the root. Directories are created with
/// mode 0700, files with 0600. Run as root, it gives them to the owner of the root directory, who
/// could not read them otherwise.
public final class LocalStorage: Storage {
  let root: Directory
  /// The owner of what is created; nil for the user of this process.
  let owner: Owner?
  private let unfinished = Atomic<Int>(0)

  /// Opens the storage in an existing directory. A link to a directory is followed.
  public init(path: ByteString) throws(StoreError) {
    do {
      root = try Directory.open(path: path)
      owner = try Owner(of: root)
    } catch {
      guard error.isMissing else { throw .system(error) }
      throw StoreError(
        .noRepository, "open the repository", subject: path.description, reason: error.reason,
        hint: StoreError.absentHint(isLocal: true), cause: error)
    }
  }

  private init(root: consuming Directory) throws(SystemError) {
    owner = try Owner(of: root)
    self.root = root
  }

  /// Opens the storage in a directory, and creates it with its parents if it is missing. A new
  /// directory gets mode 0700, and so does an existing empty one if the file system allows it.
  public static func create(path: ByteString) throws(StoreError) -> LocalStorage {
    do {
      let root = try Directory.make(path: path, permissions: 0o700)
      if try root.isEmpty() { try? root.setPermissions(0o700) }
      return try LocalStorage(root: root)
    } catch {
      throw StoreError(
        .system, "create the repository", subject: path.description, reason: error.reason,
        hint: error.hint, cause: error)
    }
  }

  /// The path with which it was opened.
  public var location: String { root.path.description }

  /// Always true: a file system supports rename.
  public var canRename: Bool { true }

  /// Returns the identity of the root directory, with which a backup excludes the repository.
  public func identity() throws(StoreError) -> FileIdentity {
    try StoreError.wrap { () throws(SystemError) in try root.status().identity }
  }

  /// Returns the identity of the root directory.
  public func directoryIdentity() throws(StoreError) -> FileIdentity? { try identity() }

  /// Returns the space of the volume.
  public func space() throws(StoreError) -> VolumeSpace? {
    try StoreError.wrap { () throws(SystemError) in
      var space = try root.space()
      space.device = try root.status().identity.device
      return space
    }
  }

  /// Converts a failed system call. A full or read-only volume is reported for the repository, not
  /// for a single file.
  func failure(_ error: SystemError) -> StoreError {
    guard error.endsEverything else { return .system(error) }
    return StoreError(
      .system, "write to the repository", subject: location, reason: error.reason, hint: error.hint,
      cause: error)
  }

  /// Returns a name for an unfinished object that is unique in this process.
  func nextTemporary() -> ByteString {
    ByteString("unfinished-\(unfinished.add(1, ordering: .relaxed).newValue)")
  }

  /// Opens a directory of the storage, component by component.
  func directory(_ path: ObjectPath) throws(SystemError) -> Directory {
    guard let first = path.components.first else { return try root.duplicate() }
    var directory = try root.directory(first)
    for component in path.components.dropFirst() { directory = try directory.directory(component) }
    return directory
  }

  /// Makes system calls on the directory that contains `path`.
  func within<Result: ~Copyable>(
    _ path: ObjectPath, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do { return try body(try directory(path.directory)) } catch {
      throw failure(error, at: path.directory)
    }
  }
}

extension LocalStorage {
  /// Reads a complete file.
  public func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let bytes = try reading(path) { directory throws(SystemError) in
      try directory.file(path.name).readAll(limit: limit)
    }
    guard let bytes else {
      throw .damaged(path.description, "it exceeds the limit of \(limit) bytes")
    }
    return bytes
  }

  /// Reads a range of a file into a buffer, without other memory.
  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    let end = offset.addingReportingOverflow(UInt64(count))
    let reason = "it ends before byte \(end.overflow ? offset : end.partialValue)"
    // No file is that long. The system would refuse the offset, which comes from a wrong index.
    guard !end.overflow, end.partialValue <= UInt64(Int64.max) else {
      throw .damaged(path.description, reason)
    }
    try reading(path) { directory throws(SystemError) in
      try directory.file(path.name).read(count: count, at: offset, into: &buffer)
    }
    guard buffer.count == count else { throw .damaged(path.description, reason) }
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
      guard let found, found.kind != .file else { throw failure(error, at: path) }
      throw .damaged(path.description, "it is not a regular file")
    }
  }

  /// Returns the names in a directory.
  public func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    do { return try self.directory(directory).readNames() } catch {
      throw failure(error, at: directory)
    }
  }

  /// Lists one directory at a time, through handles. Only one is open at any time.
  public func forEachObject(
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
      throw failure(error, at: path)
    }
  }

  /// Returns the status of a file or directory. A link counts as missing.
  public func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    do {
      return ObjectStatus(try directory(path.directory).statusIfPresent(path.name))
    } catch {
      if error.isMissing { return nil }
      throw failure(error, at: path)
    }
  }

  /// Starts a file.
  public func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    do {
      return try Writer(storage: self, directory: directory)
    } catch { throw failure(error, at: directory) }
  }

  /// Creates directories.
  public func makeDirectories(_ names: [ByteString], in path: ObjectPath) throws(StoreError) {
    do {
      let directory = try directory(path)
      for name in names {
        try directory.createDirectory(name, permissions: 0o700)
        try owner?.take(directory.directory(name))
      }
      try directory.sync()
    } catch {
      guard error.isExisting else { throw failure(error, at: path) }
      throw StoreError(
        .notEmpty, "create the directory", subject: error.path.description,
        reason: "it already exists", cause: error)
    }
  }

  /// Updates the time of a file by a write that leaves it empty, so that the file system's clock is
  /// used.
  public func touch(_ path: ObjectPath) throws(StoreError) {
    try within(path) { directory throws(SystemError) in
      let file = try directory.openOrCreate(path.name, permissions: 0o600)
      try owner?.takeIfNew(file)
      try file.write([0])
      try file.truncate(to: 0)
    }
  }

  /// Renames an object and syncs both directories.
  public func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try within(path) { from throws(SystemError) in
      let to = try directory(target.directory)
      try from.rename(path.name, to: target.name, in: to)
      try to.sync()
      try from.sync()
    }
  }

  /// Renames objects without a sync.
  public func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool {
    var isWhole = true
    for move in moves {
      do {
        try within(move.path) { from throws(SystemError) in
          let to = try directory(move.target.directory)
          try from.rename(move.path.name, to: move.target.name, in: to)
        }
      } catch {
        guard error.code == .missing else { throw error }
        isWhole = false
      }
    }
    return isWhole
  }

  /// Removes a file or an empty directory.
  public func remove(_ path: ObjectPath) throws(StoreError) {
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

extension LocalStorage {
  /// A file in the lease directory that becomes an object by a rename.
  ///
  /// Not thread-safe. The temporary is addressed by its path from the storage's root, not by a
  /// handle on the lease directory, so that the rename fails if the lease was removed. After a
  /// failed fsync the kernel may have dropped pages and report the next fsync as successful. The
  /// same descriptor is therefore never synced again: the bytes are copied once into a new file,
  /// verified by their hash, and that file is synced.
  final class Writer: ObjectWriter {
    private let storage: LocalStorage
    private let directory: ByteString
    private var name: ByteString
    private var file: Descriptor
    private var size: UInt64 = 0
    private var isPresent = true
    /// Whether the object has its name, by either attempt.
    private var isNamed = false

    init(storage: LocalStorage, directory path: ObjectPath) throws(SystemError) {
      self.storage = storage
      directory = ByteString(joining: path.components)
      name = directory.appending(storage.nextTemporary())
      file = try storage.create(name)
    }

    deinit {
      if isPresent { try? storage.root.remove(name) }
    }

    func append(_ bytes: [UInt8]) throws(StoreError) {
      do { try file.write(bytes) } catch { throw storage.failure(error) }
      size += UInt64(bytes.count)
    }

    func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
      do {
        try settle(path)
      } catch {
        guard error.operation == .sync else { throw storage.failure(error) }
        do {
          try makeAgain(digest)
          try settle(path)
        } catch { throw failure(error) }
      }
      if !isReadSoon { file.willNotBeReadSoon() }
    }

    func discard() {
      guard isPresent else { return }
      isPresent = false
      try? storage.root.remove(name)
    }

    /// Returns the error to report: `notDurable` once the object has its name, because it is listed
    /// from then on.
    private func failure(_ error: SystemError) -> StoreError {
      let failure = storage.failure(error)
      guard isNamed else { return failure }
      return StoreError(
        .notDurable, failure.action, subject: failure.subject, reason: failure.reason,
        hint: failure.hint, cause: error)
    }

    /// Syncs the content, renames the file into place, and syncs the directory.
    private func settle(_ path: ObjectPath) throws(SystemError) {
      try file.sync()
      let target = try storage.directory(path.directory)
      try storage.root.rename(name, to: path.name, in: target)
      (isPresent, isNamed) = (false, true)
      try target.sync()
    }

    /// Copies the written bytes into a new temporary, with at most 1 MiB of memory.
    private func makeAgain(_ digest: Digest) throws(SystemError) {
      let next = directory.appending(storage.nextTemporary())
      let copy = try storage.create(next)
      discard()
      (name, isPresent) = (next, true)
      guard try self.copy(to: copy) == digest else {
        throw SystemError(.sync, next, number: Self.inputOutputError)
      }
      file = copy
    }

    private func copy(to target: borrowing Descriptor) throws(SystemError) -> Digest {
      var hash = Blake2b()
      var offset: UInt64 = 0
      while offset < size {
        let bytes = try file.read(count: Int(min(size - offset, 1 << 20)), at: offset)
        if bytes.isEmpty { break }
        hash.update(bytes)
        try target.write(bytes)
        offset += UInt64(bytes.count)
      }
      return hash.finish()
    }

    /// EIO: the bytes on disk differ from those that were written.
    private static let inputOutputError: Int32 = 5
  }
}
