internal import Synchronization
public import SystemIO

/// A repository's objects as files below one directory, local or mounted.
///
/// Every call goes through directory handles and follows no link below the root. Directories are made with
/// mode 0700, files with 0600.
public final class LocalStorage: Storage {
  let root: Directory
  private let unfinished = Atomic<Int>(0)

  /// Opens the storage in an existing directory; a link to one is followed.
  public init(path: ByteString) throws(StoreError) {
    do {
      root = try Directory.open(path: path)
    } catch {
      guard error.isMissing else { throw .system(error) }
      throw StoreError(
        .noRepository, "open the repository", path.description, error.reason,
        hint: "'sandboxctl init' makes one; or name another place", cause: error)
    }
  }

  private init(root: consuming Directory) { self.root = root }

  /// Opens the storage in a directory that is made, with those above it, where it is missing. The
  /// directory gets mode 0700 if it is made here, and where its file system lets it if it is empty.
  public static func create(path: ByteString) throws(StoreError) -> LocalStorage {
    do {
      let root = try Directory.make(path: path, permissions: 0o700)
      if try root.isEmpty() { try? root.setPermissions(0o700) }
      return LocalStorage(root: root)
    } catch {
      throw StoreError(
        .system, "make the repository", path.description, error.reason, hint: error.hint,
        cause: error)
    }
  }

  /// The path that it was opened by.
  public var place: String { root.path.description }

  /// A file system renames.
  public var canRename: Bool { true }

  /// What tells the root directory from every other, so that a backup can leave it out of itself.
  public func identity() throws(StoreError) -> FileIdentity {
    try StoreError.wrap { () throws(SystemError) in try root.status().identity }
  }

  /// The volume's space.
  public func space() throws(StoreError) -> VolumeSpace? {
    try StoreError.wrap { () throws(SystemError) in
      var space = try root.space()
      space.device = try root.status().identity.device
      return space
    }
  }

  /// A failed call as this module's error. A full or read-only volume is the repository's matter,
  /// whatever file it came to light with.
  func failure(_ error: SystemError) -> StoreError {
    guard error.endsEverything else { return .system(error) }
    return StoreError(
      .system, "write to the repository", place, error.reason, hint: error.hint, cause: error)
  }

  /// A name for an unfinished object that no other of this program has.
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

  /// Runs calls to the system on the directory that holds `path`.
  func within<Result: ~Copyable>(
    _ path: ObjectPath, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do { return try body(try directory(path.directory)) } catch { throw failure(error) }
  }
}
