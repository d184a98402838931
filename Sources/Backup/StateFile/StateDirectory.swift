package import ArchiveStore
internal import Codecs
package import SystemIO

/// The directory of a source's state files, with the source's lock held.
final class StateDirectory: Sendable {
  let directory: Directory
  /// The lock of this value, or nil if the caller holds one.
  private let lock: FileLock?
  private let callersLock: SourceLock?

  /// Opens the directory, creating it if necessary, and takes the lock unless the caller holds it.
  ///
  /// - Throws: an error for which `isBusy` is true if another run holds the lock.
  init(
    _ key: StateKey, in cache: ByteString, under held: SourceLock? = nil
  ) throws(SystemError) {
    lock = held == nil ? try key.acquireLock(in: cache) : nil
    directory = try Directory.make(path: key.directory(in: cache), permissions: 0o700)
    callersLock = held
  }

  /// Returns the path of a file, for messages.
  func path(_ name: ByteString) -> ByteString { directory.path.appending(name) }

  /// Returns the current time by the clock of the file system that holds the files.
  func time(_ key: StateKey) throws(SystemError) -> Timestamp {
    // Writes after the lock's own note at the beginning, which must be preserved.
    let file = try directory.openOrCreate(key.lock, permissions: 0o600)
    try file.write([UInt8(ascii: "\n")], at: 31)
    return try file.status().modified
  }

  /// Opens a file for reading and appending.
  func open(_ name: ByteString) throws(SystemError) -> File {
    guard let status = try directory.statusIfPresent(name) else { return .absent }
    guard status.kind == .file else { return .refused("it is not a regular file") }
    let file = try directory.openOrCreate(name, permissions: 0o600)
    if let refusal = Self.refusal(try file.status()) { return .refused(refusal) }
    return .open(file)
  }

  /// Returns the reason why a file cannot be this user's own state, or nil if it can.
  private static func refusal(_ status: FileStatus) -> String? {
    if status.kind != .file { return "it is not a regular file" }
    if status.user != Host.userID { return "another user owns it" }
    return status.permissions & 0o022 == 0 ? nil : "other users may write to it"
  }

  /// Creates a file, replacing an existing one.
  func create(_ name: ByteString) throws(SystemError) -> Descriptor {
    if try directory.statusIfPresent(name) != nil { try directory.remove(name) }
    return try directory.create(name, permissions: 0o600)
  }
}

extension StateDirectory {
  /// The file at a state file's path.
  enum File: ~Copyable {
    case absent
    case refused(String)
    case open(Descriptor)
  }
}

/// The identity of a state file: one source of backups in one repository.
struct StateKey: Hashable, Sendable {
  /// The repository's id.
  let repository: Digest
  /// The identity of the source (docs/state-file.md, "Names").
  let source: Digest

  /// Returns the directory of the repository's files, below the cache directory.
  func directory(in cache: ByteString) -> ByteString { Self.directory(of: repository, in: cache) }

  static func directory(of repository: Digest, in cache: ByteString) -> ByteString {
    HostCaches.path(in: cache).appending(ByteString(repository.hex))
  }

  /// The suffixes of the files' names, after the id of the source.
  private enum Suffix: String {
    case state = ".state"
    case partial = ".partial"
    case replacement = ".state.new"
    case marks = ".marks"
    case lock = ".lock"
  }

  private func name(_ suffix: Suffix) -> ByteString { ByteString(source.hex + suffix.rawValue) }

  var state: ByteString { name(.state) }
  var partial: ByteString { name(.partial) }
  /// The new state while it is written.
  var replacement: ByteString { name(.replacement) }
  /// The marks of the source's entries.
  var marks: ByteString { name(.marks) }
  var lock: ByteString { Self.lock(of: source) }

  /// Returns the name of a source's lock.
  static func lock(of source: Digest) -> ByteString {
    ByteString(source.hex + Suffix.lock.rawValue)
  }

  /// Returns the source of a file in the directory, or nil if the name is not that of a source's
  /// file.
  static func source(ofFile name: ByteString) -> Digest? {
    guard let text = name.utf8, let dot = text.firstIndex(of: "."),
      Suffix(rawValue: String(text[dot...])) != nil
    else { return nil }
    return Digest(hex: text[..<dot])
  }

  /// Takes the lock of the source. `HostCaches.clear` may remove its file and the directory at the
  /// same time: both are then created again.
  func acquireLock(in cache: ByteString) throws(SystemError) -> FileLock {
    var attempts = 10
    while true {
      do throws(SystemError) {
        let files = try Directory.make(path: directory(in: cache), permissions: 0o700)
        return try FileLock.acquire(removable: lock, in: files)
      } catch {
        attempts -= 1
        guard error.isAbsent, attempts > 0 else { throw error }
      }
    }
  }
}

extension Repository {
  /// Returns this host's copies of the repository's index, beside the state of its sources.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  package func indexCache(in cache: ByteString) -> IndexCache {
    IndexCache(
      directory: StateKey.directory(of: id, in: cache).appending(HostCaches.index),
      isEncrypted: isEncrypted)
  }

  /// Returns the directory of this host's files of the repository.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  package func hostDirectory(in cache: ByteString) -> ByteString {
    StateKey.directory(of: id, in: cache)
  }

  /// Returns this host's file of the heads of the repository's snapshots, beside the state of its
  /// sources.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  package func headCache(in cache: ByteString) -> SnapshotHeadCache {
    SnapshotHeadCache(directory: StateKey.directory(of: id, in: cache))
  }

  /// Returns this host's file with the progress of partial checks of the repository.
  ///
  /// - Parameter cache: the cache directory, as in `Host.cacheDirectory`.
  package func checkRounds(in cache: ByteString) -> CheckRoundFile {
    CheckRoundFile(directory: StateKey.directory(of: id, in: cache))
  }

  /// Returns this host's record of the last successful run of a command on the repository.
  ///
  /// - Parameters:
  ///   - command: the name of the command.
  ///   - words: the options that distinguish its runs.
  ///   - cache: the cache directory, as in `Host.cacheDirectory`.
  package func runStamp(
    of command: String, words: [String], in cache: ByteString
  ) -> RunStamp {
    RunStamp(
      directory: StateKey.directory(of: id, in: cache), command: command, words: words)
  }
}
