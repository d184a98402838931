internal import Synchronization
internal import SystemIO

/// The private directory of a run, with a directory for each case.
///
/// It is locked while the run uses it, so that the next run can distinguish it from the directory
/// of a killed run, which it removes.
final class RunDirectory: Sendable {
  /// The directory's path, without links.
  let path: ByteString
  private let name: ByteString
  private let parent: ByteString
  /// Held until the run ends; nil on a file system without locks.
  private let lock: FileLock?
  /// The names of the copies that the run has kept.
  private let keptNames = Mutex<Set<ByteString>>([])

  private static let temporaryNames = RandomName(prefix: "sandboxctl-scenarios-")
  /// The maximum number of directories that are created until one is locked.
  private static let attempts = 100

  /// Creates the directory, which only this user can enter.
  init(in temporary: ByteString) throws(SystemError) {
    parent = try Host.realPath(temporary)
    let above = try Directory.open(resolved: parent)
    var held: FileLock?
    var chosen: ByteString?
    for _ in 0..<Self.attempts where chosen == nil {
      let name = Self.temporaryNames.make()
      try above.createDirectory(name, permissions: 0o700)
      do throws(SystemError) {
        // Until it is locked, another run can mistake it for an abandoned one.
        let made = try above.directory(name)
        held = try Self.lock(made)
        let isStillThere = try above.statusIfPresent(name)?.identity == made.status().identity
        if isStillThere { chosen = name }
      } catch {
        guard error.isBusy || error.isMissing else { throw error }
      }
    }
    guard let chosen else {
      throw SystemError.replaced(parent.appending(ByteString(Self.temporaryNames.prefix)))
    }
    name = chosen
    path = parent.appending(chosen)
    lock = held
  }

  /// Locks a directory; nil if its file system has no locks.
  private static func lock(_ directory: borrowing Directory) throws(SystemError) -> FileLock? {
    do throws(SystemError) {
      return try FileLock(directory)
    } catch {
      if error.isBusy || error.isMissing { throw error }
      return nil
    }
  }

  /// Removes the directories that killed runs of this user left in a directory. Directories that a
  /// run has locked, that belong to other users, or that have other names stay, and so do other
  /// kinds of entries and those that cannot be opened or removed.
  static func removeAbandoned(in temporary: ByteString) {
    guard let above = try? Directory.open(path: temporary) else { return }
    var names: [ByteString] = []
    try? above.forEachName { bytes in
      let name = ByteString(bytes)
      if Self.temporaryNames.matches(name) { names.append(name) }
    }
    for name in names {
      guard let status = try? above.status(name), status.kind == .directory,
        status.user == Host.userID, let directory = try? above.directory(name),
        let lock = try? FileLock(directory)
      else { continue }
      try? Self.removeTree(name, in: above)
      _ = consume lock
    }
  }

  /// Creates a directory in it and returns its path.
  func make(_ name: ByteString) throws(SystemError) -> ByteString {
    try Directory.open(resolved: path).createDirectory(name, permissions: 0o700)
    return path.appending(name)
  }

  /// Removes a directory in it. Entries that cannot be removed now are removed with the run's
  /// directory.
  func remove(_ name: ByteString) {
    try? Self.removeTree(name, in: Directory.open(resolved: path))
  }

  /// Removes the directory and everything in it.
  func remove() { try? Self.removeTree(name, in: Directory.open(resolved: parent)) }

  /// Removes a tree, even if a package or a restore made directories in it read-only.
  private static func removeTree(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    _ = try directory.removeTree(name, watch: RemovalWatch(makesWritable: true))
  }

  /// Moves the directory of a case to another directory, or copies it if that is on another volume.
  /// A copy that an earlier run kept there under the same name is replaced; no other entry is.
  ///
  /// - Throws: `OperationError`: `failed` if another entry has the name; `SystemError`.
  func move(_ name: ByteString, to target: ByteString, as wanted: ByteString) throws {
    let newName = unusedName(wanted)
    let from = try Directory.open(resolved: path)
    let to = try Directory.make(path: target, permissions: 0o700)
    if try to.statusIfPresent(newName) != nil {
      guard try Self.isOfCase(newName, in: to) else {
        throw OperationError(
          .failed, code: .targetExists, "keep the copy", subject: target.appending(newName),
          reason: "it exists and is not a copy that a run has kept",
          hint: "move it, or name another directory with '--keep-copy'")
      }
      try Self.removeTree(newName, in: to)
    }
    do throws(SystemError) {
      try from.rename(name, to: newName, in: to, replacing: false)
    } catch {
      try to.createDirectory(newName, permissions: 0o700)
      try TreeCopy.run(try from.directory(name), to: try to.directory(newName))
    }
  }

  /// Returns a name for a kept copy that no other case of the run has: names of scenarios can be
  /// the same, and some of their characters are replaced.
  private func unusedName(_ wanted: ByteString) -> ByteString {
    keptNames.withLock { names in
      var (name, number) = (wanted, 1)
      while !names.insert(name).inserted {
        number += 1
        name = wanted.concatenating(ByteString("-\(number)"))
      }
      return name
    }
  }

  /// Whether an entry is the directory of a case: it has a device, and nothing but the entries that
  /// a case creates.
  private static func isOfCase(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    guard try directory.status(name).kind == .directory else { return false }
    let names = try directory.directory(name).names()
    let isKnown = names.allSatisfy { name in
      ["cache", "repository"].contains(name)
        || ["device-", "package-"].contains { name.bytes.starts(with: $0.utf8) }
    }
    return names.isEmpty || isKnown && names.contains("device-1")
  }
}
