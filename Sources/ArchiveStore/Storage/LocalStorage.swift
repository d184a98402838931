internal import Synchronization
package import SystemIO

/// The storage of a repository as files below one directory, local or mounted.
///
/// All calls use directory handles and follow no link below the root. Directories are created with
/// mode 0700, files with 0600.
package final class LocalStorage: Storage {
  let root: Directory
  private let unfinished = Atomic<Int>(0)

  /// Opens the storage in an existing directory. A link to a directory is followed.
  package init(path: ByteString) throws(StoreError) {
    do {
      root = try Directory.open(path: path)
    } catch {
      guard error.isMissing else { throw .system(error) }
      throw StoreError(
        .noRepository, "open the repository", subject: path.description, reason: error.reason,
        hint: "run 'sandboxctl init' to create one, or give another path", cause: error)
    }
  }

  private init(root: consuming Directory) { self.root = root }

  /// Opens the storage in a directory, and creates it with its parents if it is missing. A new
  /// directory gets mode 0700, and so does an existing empty one if the file system allows it.
  package static func create(path: ByteString) throws(StoreError) -> LocalStorage {
    do {
      let root = try Directory.make(path: path, permissions: 0o700)
      if try root.isEmpty() { try? root.setPermissions(0o700) }
      return LocalStorage(root: root)
    } catch {
      throw StoreError(
        .system, "create the repository", subject: path.description, reason: error.reason,
        hint: error.hint, cause: error)
    }
  }

  /// The path with which it was opened.
  package var place: String { root.path.description }

  /// Always true: a file system supports rename.
  package var canRename: Bool { true }

  /// Returns the identity of the root directory, with which a backup excludes the repository.
  package func identity() throws(StoreError) -> FileIdentity {
    try StoreError.wrap { () throws(SystemError) in try root.status().identity }
  }

  /// Returns the space of the volume.
  package func space() throws(StoreError) -> VolumeSpace? {
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
      .system, "write to the repository", subject: place, reason: error.reason, hint: error.hint,
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
    do { return try body(try directory(path.directory)) } catch { throw failure(error) }
  }
}
