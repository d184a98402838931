internal import Codecs
internal import SystemIO

/// The directory of a source's state files, with the source's lock held.
final class StateDirectory: Sendable {
  let directory: Directory
  /// Of this value's own; nothing when the caller holds one.
  private let lock: FileLock?
  private let callersLock: SourceLock?

  /// Opens the directory, making it if need be, and takes the lock unless the caller holds it.
  ///
  /// - Throws: an error for which `isBusy` holds when another run has it.
  init(
    _ key: StateKey, in cache: ByteString, under held: SourceLock? = nil
  ) throws(SystemError) {
    directory = try Directory.make(path: key.directory(in: cache), permissions: 0o700)
    lock = held == nil ? try FileLock(key.lock, in: directory) : nil
    callersLock = held
  }

  /// The path of a file, for messages.
  func path(_ name: ByteString) -> ByteString { directory.path.appending(name) }

  /// The time by the clock of the file system that the files are on.
  func time(_ key: StateKey) throws(SystemError) -> Timestamp {
    // The lock's own note is not to be overwritten: it stands at the beginning.
    let file = try directory.openOrCreate(key.lock, permissions: 0o600)
    try file.write([UInt8(ascii: "\n")], at: 31)
    return try file.status().modified
  }

  /// Opens a file for reading and appending.
  func open(_ name: ByteString) throws(SystemError) -> StateFile {
    guard let status = try directory.statusIfPresent(name) else { return .absent }
    guard status.kind == .file else { return .refused("it is no file") }
    let file = try directory.openOrCreate(name, permissions: 0o600)
    if let refusal = Self.refusal(try file.status()) { return .refused(refusal) }
    return .open(file)
  }

  /// Why a file cannot be this user's own state.
  private static func refusal(_ status: FileStatus) -> String? {
    if status.kind != .file { return "it is no file" }
    if status.user != Host.userID { return "it is another user's" }
    return status.permissions & 0o022 == 0 ? nil : "other users may write to it"
  }

  /// Begins a new file in the place of what is there.
  func create(_ name: ByteString) throws(SystemError) -> Descriptor {
    if try directory.statusIfPresent(name) != nil { try directory.remove(name) }
    return try directory.create(name, permissions: 0o600)
  }
}

/// What stands at a state file's name.
enum StateFile: ~Copyable {
  case absent
  case refused(String)
  case open(Descriptor)
}
