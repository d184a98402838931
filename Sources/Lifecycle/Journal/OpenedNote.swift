internal import Codecs
internal import SystemIO

/// A note beside an operation's journal of the directory that it just made writable so as to move it
/// (docs/journal.md, "`journal/<id>.opened`"). It is on the disk before the directory's mode is changed and
/// goes when the mode is back, so that an interruption between the two does not leave the directory open.
///
/// There is one at a time: a directory is open for the length of one rename.
struct OpenedNote: Sendable {
  private let id: String
  private let root: ByteString
  private static let format: Int64 = 1
  private static let suffix = ".opened"

  private var name: ByteString { ByteString(id + Self.suffix) }

  /// The note of an operation on a device.
  init(_ id: String, root: ByteString) { (self.id, self.root) = (id, root) }

  /// Notes a directory with the paths that it has before and after the move. What an earlier note tells of,
  /// as its mode could not be put back then, is put right first.
  func write(
    _ status: FileStatus, opened: UInt16, at paths: [ByteString]
  ) throws(SystemError) {
    try settle()
    let json = JSON.object([
      JSON.Member("format", .integer(Self.format)), JSON.Member("paths", JournalRecord.list(paths)),
      JSON.Member("inode", .integer(Int64(bitPattern: status.identity.inode))),
      JSON.Member("mode", .integer(Int64(status.permissions))),
      JSON.Member("opened", .integer(Int64(opened))),
    ])
    let directory = try ControlDirectory.make(ControlDirectory.journal, root: root)
    try AtomicFile.write(json.compactBytes, as: name, in: directory, permissions: 0o600)
    try ControlOwner.give(name, in: directory)
  }

  /// Removes the note of a directory whose mode is as it was.
  func remove() throws(SystemError) {
    do throws(SystemError) {
      try ControlDirectory.open(ControlDirectory.journal, root: root)?.remove(name)
    } catch { if !error.isMissing { throw error } }
  }

  /// Bytes of two paths and three numbers, with room for whatever stands in a name.
  private static let limit = 1 << 20

  /// Puts back the mode of the directory that was left open, if one was.
  ///
  /// A directory that is another one by now, or has got another mode since, is left alone; so is one that
  /// belongs to somebody else by now, which only they can change.
  ///
  /// - Parameter scope: where directories may lie, for a note that another run may have written.
  func settle(within scope: RecoveryScope? = nil) throws(SystemError) {
    guard let directory = try ControlDirectory.open(ControlDirectory.journal, root: root),
      let bytes = try ControlDirectory.read(name, in: directory, limit: Self.limit)
    else { return }
    // A note that is damaged says nothing; it was written whole, and is of one rename.
    if let note = Content(reading: bytes) {
      for path in note.paths where scope?.permits(path) ?? true { try note.settle(path) }
    }
    try remove()
  }

  /// What a note says.
  private struct Content {
    let paths: [ByteString]
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
      self.inode = UInt64(bitPattern: inode)
    }

    func settle(_ path: ByteString) throws(SystemError) {
      do throws(SystemError) {
        let directory = try Self.open(path)
        let status = try directory.status()
        guard status.identity.inode == inode, status.permissions == opened else { return }
        try directory.setPermissions(mode)
        try directory.sync()
      } catch {
        if !error.isMissing, !error.isLink, !error.isRefused { throw error }
      }
    }

    /// Opens a directory, and follows no link to it. Its path may be longer than the kernel takes at once.
    private static func open(_ path: ByteString) throws(SystemError) -> Directory {
      let names = path.components
      let first = names.dropLast().prefix(8).map(\.bytes)
      var directory = try Directory.open(
        resolved: ByteString("/").appending(
          ByteString(first.joined(separator: [UInt8(ascii: "/")]))))
      for name in names.dropFirst(first.count) { directory = try directory.directory(name) }
      return directory
    }
  }
}

extension Directory {
  /// Calls `body`, which moves a child that is a directory to another one, with the child open to its owner
  /// meanwhile: moving a directory changes its `..`, which one that its owner must not write to forbids.
  ///
  /// - Parameter note: where it is noted, for what is done under a journal.
  func whileOpen(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString, _ note: OpenedNote?,
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
      // Whoever ends the operation tries it again, by the note.
      if (try? child.setPermissions(status.permissions)) != nil { try? note?.remove() }
      throw error
    }
    try child.setPermissions(status.permissions)
    guard let note else { return }
    try child.sync()
    try note.remove()
  }
}
