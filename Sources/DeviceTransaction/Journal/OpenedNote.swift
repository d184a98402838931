internal import ArchiveStore
internal import Codecs
package import SystemIO

/// A note next to an operation's journal that records the directory made writable for a move
/// (docs/journal.md, "`journal/<id>.opened`"). The note is on disk before the directory's mode
/// changes and is removed once the mode is restored, so that an interruption in between does not
/// leave the directory writable.
///
/// There is at most one note at a time: a directory is open only during one rename.
package struct OpenedNote: Sendable {
  private let id: String
  private let root: ByteString
  private static let format: Int64 = 1
  private static let suffix = ".opened"

  private var name: ByteString { ByteString(id + Self.suffix) }

  /// Creates the note of an operation on a device.
  init(_ id: String, root: ByteString) { (self.id, self.root) = (id, root) }

  /// Records a directory with its paths before and after the move. A mode that an earlier note
  /// could not restore is restored first.
  func write(
    _ status: FileStatus, opened: UInt16, at paths: [ByteString]
  ) throws(SystemError) {
    try settle()
    let json = JSON.object(
      [
        JSON.Member("format", .integer(Self.format)),
        JSON.Member("paths", JournalRecord.list(paths)),
      ] + JSON.path(root, named: "device") + [
        JSON.Member("inode", .integer(Int64(bitPattern: status.identity.inode))),
        JSON.Member("mode", .integer(Int64(status.permissions))),
        JSON.Member("opened", .integer(Int64(opened))),
      ])
    let directory = try ControlDirectory.make(ControlDirectory.journal, root: root)
    let file = try AtomicFile(lockedIn: directory, permissions: 0o600)
    try file.write(json.compactBytes)
    try file.commit(as: name)
    try directory.inheritOwner(name)
  }

  /// Removes the note of a directory whose mode has been restored.
  func remove() throws(SystemError) {
    do throws(SystemError) {
      try ControlDirectory.open(ControlDirectory.journal, root: root)?.remove(name)
    } catch { if !error.isMissing { throw error } }
  }

  /// The maximum size in bytes: two long paths and three numbers.
  private static let limit = 1 << 20

  /// Restores the mode of a directory that was left open, if there is one.
  ///
  /// A directory that has been replaced, or whose mode has changed again, is not touched. Neither
  /// is a directory that does not belong to the owner of the note: only the owner of a directory
  /// can have made it writable, and root accepts notes of the device's owner.
  ///
  /// - Parameter scope: the permitted locations, for a note that another process may have written.
  func settle(within scope: DeviceScope? = nil) throws(SystemError) {
    guard let directory = try ControlDirectory.open(ControlDirectory.journal, root: root),
      let file = try ControlDirectory.file(name, in: directory)
    else { return }
    let owner = try file.status().user
    // A damaged note is ignored: it was written in one step and concerns one rename.
    if let bytes = try file.readAll(limit: Self.limit), let note = Content(reading: bytes) {
      for path in note.paths(at: root) where scope?.permits(path) ?? true {
        try note.settle(path, of: owner)
      }
    }
    try remove()
  }

  /// The parsed content of a note.
  private struct Content {
    private let paths: [ByteString]
    /// The device's directory; nil in notes of earlier versions.
    private let device: ByteString?
    let inode: UInt64
    let mode: UInt16
    let opened: UInt16

    init?(reading bytes: [UInt8]) {
      guard let json = try? JSON(parsing: bytes), json["format"]?.integer == OpenedNote.format,
        let paths = JournalRecord.paths(json["paths"]), paths.allSatisfy(\.isAbsolute),
        let inode = json["inode"]?.integer,
        let mode = json["mode"]?.integer.flatMap({ UInt16(exactly: $0) }),
        let opened = json["opened"]?.integer.flatMap({ UInt16(exactly: $0) })
      else { return nil }
      (self.paths, self.mode, self.opened) = (paths, mode, opened)
      device = json.path(named: "device")
      self.inode = UInt64(bitPattern: inode)
    }

    /// Returns the paths on a device that may be at another path than when the note was written.
    func paths(at root: ByteString) -> [ByteString] {
      guard let device else { return paths }
      return paths.map { $0.moved(from: device, to: root) }
    }

    /// Restores the mode of the directory at a path if it is the one of the note and belongs to a
    /// user.
    func settle(_ path: ByteString, of owner: UInt32) throws(SystemError) {
      do throws(SystemError) {
        let directory = try Self.open(path)
        let status = try directory.status()
        guard status.identity.inode == inode, status.permissions == opened, status.user == owner
        else { return }
        try directory.setPermissions(mode)
        try directory.sync()
      } catch {
        if !error.isMissing, !error.isLink, !error.isRefused { throw error }
      }
    }

    /// Opens a directory without following any symbolic link in its path. The path may exceed the
    /// kernel's limit.
    private static func open(_ path: ByteString) throws(SystemError) -> Directory {
      let names = path.components
      let first = names.dropLast().prefix(8)
      var directory = try Directory.open(resolved: ByteString(joining: first, isAbsolute: true))
      for name in names.dropFirst(first.count) { directory = try directory.directory(name) }
      return directory
    }
  }
}

extension Directory {
  /// Calls `body`, which moves a child directory to another directory, while the child is writable
  /// for its owner. Moving a directory changes its `..`, which requires write permission on it.
  ///
  /// - Parameter note: the note that records the directory; nil without a journal.
  package func whileOpen(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString, note: OpenedNote?,
    _ body: () throws(SystemError) -> Void
  ) throws(SystemError) {
    let child = try directory(name)
    let status = try child.status()
    let opened = status.permissions | 0o700
    try note?.write(
      status, opened: opened, at: [path.appending(name), target.path.appending(newName)])
    do throws(SystemError) {
      try child.setPermissions(opened)
      try body()
    } catch {
      // The end of the operation or a recovery tries again, using the note.
      if (try? child.setPermissions(status.permissions)) != nil { try? note?.remove() }
      throw error
    }
    try child.setPermissions(status.permissions)
    guard let note else { return }
    try child.sync()
    try note.remove()
  }
}
