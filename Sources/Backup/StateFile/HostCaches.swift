internal import ArchiveStore
package import Codecs
package import DeviceScan
package import SystemIO

/// The caches that this host keeps of repositories: a directory for each, named by the repository's
/// id (docs/state-file.md, "Names").
///
/// Only directories with such a name, and regular files in them with names of this program's files,
/// are part of a cache. Everything else is reported and kept, and no symbolic link below the
/// directory of the caches is followed.
package struct HostCaches {
  /// The directory of the caches.
  package let path: ByteString

  /// Finds the caches in a cache directory, as in `Host.cacheDirectory`.
  package init(in cache: ByteString) { path = Self.path(in: cache) }

  /// Returns the directory of the caches in the cache directory.
  static func path(in cache: ByteString) -> ByteString { cache.appending("sandboxctl") }

  /// The name of the directory with the copies of the index, in a repository's cache.
  static let index: ByteString = "index"

  /// Opens the directory; nil if it does not exist.
  private func open() throws(SystemError) -> Directory? {
    do throws(SystemError) {
      return try Directory.open(path: path)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Returns the caches, the last used first, and the paths of the directory's other entries.
  ///
  /// - Throws: `SystemError` if a directory exists and cannot be read.
  package func list() throws(SystemError) -> (caches: [RepositoryCache], others: [ByteString]) {
    guard let root = try open() else { return ([], []) }
    var (caches, others): ([RepositoryCache], [ByteString]) = ([], [])
    for name in try root.names() {
      guard let status = try root.statusIfPresent(name) else { continue }
      if status.kind == .directory, let id = name.utf8.flatMap({ Digest(hex: $0) }) {
        caches.append(try RepositoryCache(id, in: root.directory(name)))
      } else {
        others.append(path.appending(name))
      }
    }
    return (caches.sorted { ($1.lastUse, $0.id) < ($0.lastUse, $1.id) }, others)
  }

  /// Removes caches, each of which must exist. Files that other programs have open or mapped stay
  /// valid for these.
  ///
  /// The locks of all sources are taken first, so nothing is removed while a backup is running, and
  /// no backup of these sources begins before the end.
  ///
  /// - Parameters:
  ///   - ids: the repositories, each once.
  ///   - isDryRun: whether to remove nothing.
  /// - Throws: `OperationError` with `busy` if a backup is running; `SystemError`. Files that could
  ///   not be removed are listed in the result instead.
  package func clear(_ ids: [Digest], isDryRun: Bool) throws -> [ClearedCache] {
    guard let root = try open() else { return [] }
    var held: [HeldCache] = []
    for id in ids {
      let cache = HeldCache(id, try root.directory(ByteString(id.hex)))
      try cache.lock(isDryRun: isDryRun)
      held.append(cache)
    }
    var cleared: [ClearedCache] = []
    for cache in held {
      cleared.append(try isDryRun ? cache.content() : cache.remove(from: root))
    }
    return cleared
  }
}

/// The cache of one repository on this host.
package struct RepositoryCache: Sendable {
  /// The repository's id.
  package let id: Digest
  package private(set) var totals = EntryTotals()
  /// The time when a command last wrote to it.
  package private(set) var lastUse: Timestamp
  /// The paths of entries that are not part of it.
  package let others: [ByteString]

  fileprivate init(_ id: Digest, in directory: borrowing Directory) throws(SystemError) {
    let files = try CachedFiles(in: directory)
    self.id = id
    others = files.others
    lastUse = try directory.status().modified
    for file in files.all {
      totals.add(file.status)
      lastUse = max(lastUse, file.status.modified)
    }
  }
}

/// The result of the removal of a cache.
package struct ClearedCache: Sendable {
  /// The repository's id.
  package let id: Digest
  /// The files that were removed, or would be.
  package fileprivate(set) var removed = EntryTotals()
  /// The paths of entries that are not part of the cache, which stay.
  package let others: [ByteString]
  /// The files and directories that could not be removed, with the reason.
  package fileprivate(set) var failed: [PathRemark] = []
}

/// The files of a cache.
private struct CachedFiles {
  /// A regular file with a name of this program.
  struct File {
    let name: ByteString
    /// The source that it belongs to; nil for a file of the repository.
    let source: Digest?
    let status: FileStatus

    var isLock: Bool { source.map { StateKey.lock(of: $0) == name } ?? false }
  }

  /// The files in the directory of the cache.
  private(set) var own: [File] = []
  /// The files in the directory of the copies of the index; nil if it does not exist.
  private(set) var copies: [File]?
  /// The paths of all other entries.
  private(set) var others: [ByteString] = []

  var all: [File] { own + (copies ?? []) }

  /// Lists a cache.
  init(in directory: borrowing Directory) throws(SystemError) {
    for name in try directory.names() {
      guard let status = try directory.statusIfPresent(name) else { continue }
      if name == HostCaches.index, status.kind == .directory, !status.isMountPoint {
        try listCopies(in: directory.directory(name))
      } else if status.kind == .file, Self.isFile(name) {
        own.append(File(name: name, source: StateKey.source(ofFile: name), status: status))
      } else {
        others.append(directory.path.appending(name))
      }
    }
  }

  private mutating func listCopies(in directory: borrowing Directory) throws(SystemError) {
    var files: [File] = []
    for name in try directory.names() {
      guard let status = try directory.statusIfPresent(name) else { continue }
      if status.kind == .file, IndexCache.isFile(name) {
        files.append(File(name: name, source: nil, status: status))
      } else {
        others.append(directory.path.appending(name))
      }
    }
    copies = files
  }

  /// Whether a name in the directory of a cache is that of a file of this program.
  private static func isFile(_ name: ByteString) -> Bool {
    StateKey.source(ofFile: name) != nil || name == SnapshotHeadCache.fileName
      || name == CheckRoundFile.fileName || RunStamp.isFile(name) || AtomicFile.isTemporary(name)
  }
}

/// A cache with the locks of its sources, which are held as long as this value lives.
private final class HeldCache {
  private let id: Digest
  private let directory: Directory
  /// The sources that no backup is using.
  private var sources: Set<Digest> = []
  private var locks: [HeldLock] = []

  private final class HeldLock {
    private let lock: FileLock

    init(_ lock: consuming FileLock) { self.lock = lock }
  }

  init(_ id: Digest, _ directory: consuming Directory) {
    self.id = id
    self.directory = directory
  }

  /// Takes the locks of all sources, or with `isDryRun` only examines them.
  ///
  /// - Throws: `OperationError` with `busy` if another process holds one; `SystemError`.
  func lock(isDryRun: Bool) throws {
    for source in Set(try CachedFiles(in: directory).own.compactMap(\.source)) {
      let name = StateKey.lock(of: source)
      guard try acquire(name, isDryRun: isDryRun) else { throw busy(name) }
      sources.insert(source)
    }
  }

  /// Takes a lock, or examines it. Returns false if another process holds it.
  ///
  /// A backup continues without a lock if the name is not that of a regular file, or if the volume
  /// does not support locks; there is nothing to wait for then.
  private func acquire(_ name: ByteString, isDryRun: Bool) throws(SystemError) -> Bool {
    guard try directory.statusIfPresent(name)?.kind ?? .file == .file else { return true }
    do throws(SystemError) {
      if isDryRun { return try !FileLock.isHeld(name, in: directory) }
      locks.append(HeldLock(try FileLock.acquire(removable: name, in: directory)))
    } catch {
      if error.isBusy { return false }
      guard error.hasNoLocks else { throw error }
    }
    return true
  }

  /// The error of a lock that another process holds.
  private func busy(_ name: ByteString) -> OperationError {
    OperationError(
      .busy, "remove the cache", subject: directory.path,
      reason: "a backup to the repository is in progress"
        + LockHolder.words(of: name, in: directory),
      hint: "nothing was removed: wait until the backup has ended, and run this again")
  }

  /// Returns the files that a removal would remove.
  func content() throws(SystemError) -> ClearedCache {
    let files = try CachedFiles(in: directory)
    var cleared = ClearedCache(id: id, others: files.others)
    for file in files.all { cleared.removed.add(file.status) }
    return cleared
  }

  /// Removes the files and then the directories, which stay if they have other entries.
  ///
  /// The files are listed again: those of a source whose first backup began in the meantime stay.
  /// The locks are removed last: without its name a lock excludes no other run.
  func remove(from root: borrowing Directory) throws(SystemError) -> ClearedCache {
    let files = try CachedFiles(in: directory)
    var cleared = ClearedCache(id: id, others: files.others)
    if let copies = files.copies {
      cleared.remove(copies, from: try directory.directory(HostCaches.index))
      cleared.removeDirectory(HostCaches.index, from: directory)
    }
    let own = files.own.filter { file in file.source.map { sources.contains($0) } ?? true }
    cleared.remove(own.filter { !$0.isLock }, from: directory)
    cleared.remove(own.filter(\.isLock), from: directory)
    cleared.removeDirectory(ByteString(id.hex), from: root)
    return cleared
  }
}

extension ClearedCache {
  fileprivate mutating func remove(
    _ files: [CachedFiles.File], from directory: borrowing Directory
  ) {
    for file in files {
      do throws(SystemError) {
        try directory.remove(file.name)
        removed.add(file.status)
      } catch { fail(error) }
    }
  }

  /// Removes a directory if it is empty.
  fileprivate mutating func removeDirectory(
    _ name: ByteString, from directory: borrowing Directory
  ) {
    do throws(SystemError) {
      try directory.removeDirectory(name)
    } catch {
      if !error.isExisting { fail(error) }
    }
  }

  private mutating func fail(_ error: SystemError) {
    if error.isMissing { return }
    failed.append(PathRemark(path: error.path, remark: error.reason))
  }
}
