internal import ArchiveStore
internal import Codecs
internal import SandboxModel
package import SystemIO

/// The directory for the entries that an operation replaces or removes in one container. It is in
/// the operation's directory in the device's trash, by logical path; a container on another volume
/// has a trash of its own there, because entries are never moved across volumes.
package final class TrashDirectory {
  /// The path of the directory for the container's entries.
  package let path: ByteString
  private var cursor: DirectoryCursor
  private let note: OpenedNote

  /// Creates the operation's directory with its note, and in it the directory of a container.
  ///
  /// - Parameters:
  ///   - container: the container's logical path.
  ///   - saved: the ID of the snapshot made before the operation, for the note.
  ///   - directory: the directory that the steps work in.
  ///   - probe: a directory below it, without access for others, for a temporary file.
  package init(
    of record: JournalRecord, saved: String? = nil, for container: ByteString,
    in directory: borrowing Directory,
    probing probe: borrowing Directory, root: ByteString
  ) throws(SystemError) {
    let trash = try ControlDirectory.make(ControlDirectory.trash, root: root)
    let own = try trash.makeInherited(ByteString(record.id))
    var note = Note(in: own, of: ByteString(record.id))?.located(at: root) ?? Note(record)
    if let saved { note.saved = saved }
    let isNear = try Self.canMove(from: probe, to: own)
    var location = ControlDirectory.path(ControlDirectory.trash, root: root)
    if !isNear { location = ControlDirectory.path(ControlDirectory.trash, root: directory.path) }
    location = location.appending(ByteString(record.id))
    if !isNear, !note.elsewhere.contains(location) { note.elsewhere.append(location) }
    // The note is written before the entries that it describes.
    try AtomicFile.write(note.bytes, as: Note.file, in: own, permissions: 0o600)
    try own.inheritOwner(Note.file)
    try trash.sync()
    path = location.appending(container)
    self.note = OpenedNote(record.id, root: root)
    cursor = DirectoryCursor(root: try Directory.makeInherited(resolved: path))
  }

  /// The directory beside those of the containers for new entries that a rollback removed: another
  /// process may have written into them.
  static let rolledBack: ByteString = "taken-back"

  /// Moves a child of a directory to a path below the container's directory, under another name if
  /// one is given. Returns the name in the trash, or nil if the child does not exist.
  @discardableResult
  package func preserve(
    _ name: ByteString, of directory: borrowing Directory, at path: [ByteString], leaving: Bool,
    as newName: ByteString? = nil
  ) throws(SystemError) -> ByteString? {
    try cursor.withDirectory(at: path, making: true) { target throws(SystemError) in
      try directory.preserve(name, in: target, as: newName ?? name, leaving: leaving, note)
    }
  }

  /// Removes the name in the trash of an entry that still has its own name in a directory because
  /// it was not replaced, or moves the entry back if its name is free.
  package func release(
    _ kept: ByteString, of name: ByteString, in directory: borrowing Directory,
    at path: [ByteString]
  ) throws(SystemError) {
    let present = try directory.statusIfPresent(name)
    try cursor.withDirectory(at: path) { target throws(SystemError) in
      guard let present else {
        return try target.addOpened(kept, to: directory, as: name, note)
      }
      guard try target.statusIfPresent(kept)?.identity == present.identity else { return }
      try target.remove(kept)
    }
  }

  /// A name of the program, so that a file left by a killed run is not mistaken for an app's.
  private static let probePrefix = ".sandboxctl-restore-probe-"

  /// Whether a name is that of a probe for moves: of one that a killed run left.
  package static func isProbe(_ name: ByteString) -> Bool {
    name.bytes.starts(with: probePrefix.utf8)
  }

  /// Returns whether entries of one directory can be moved to another: both must be on one volume
  /// and in one mount of it.
  package static func canMove(
    from probe: borrowing Directory, to directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    let name = ByteString(probePrefix + Host.randomHex(bytes: 8))
    try probe.create(name, permissions: 0o600).close()
    do throws(SystemError) {
      try probe.rename(name, to: name, in: directory)
    } catch {
      try probe.remove(name)
      if error.isOnAnotherVolume { return false }
      throw error
    }
    try directory.remove(name)
    return true
  }
}

extension TrashDirectory {
  /// The note in an operation's directory in the trash, `operation.json`.
  struct Note: Hashable, Sendable {
    static let file: ByteString = "operation.json"

    let id: String
    let operation: String
    let time: Timestamp
    /// The apps, groups and directories whose entries are there, by their logical paths.
    var subjects: [ByteString]
    /// The operation's directories on other volumes than the device's root, as absolute paths.
    var elsewhere: [ByteString] = []
    /// The device's directory, which contains these paths; nil in notes of earlier versions.
    var device: ByteString?
    /// The ID of the snapshot made before the operation.
    var saved: String?

    init(_ record: JournalRecord) {
      (id, operation, time) = (record.id, record.operation, record.time)
      (subjects, device) = (record.subjects, record.device)
    }

    /// The note for a device that is now at another path, for example on a disk that is mounted
    /// elsewhere.
    func located(at root: ByteString) -> Note {
      guard let device, device != root else { return self }
      var note = self
      note.device = root
      note.elsewhere = elsewhere.map { $0.moved(from: device, to: root) }
      return note
    }

    var bytes: [UInt8] {
      let location = device.map { JSON.path($0, named: "device") } ?? []
      let members = [
        JSON.Member("format", 1), JSON.Member("id", .string(id)),
        JSON.Member("operation", .string(operation)), JSON.Member("time", .string(time.rfc3339)),
        JSON.Member("subjects", JournalRecord.list(subjects)),
        JSON.Member("elsewhere", JournalRecord.list(elsewhere)),
        JSON.Member("saved", saved.map { .string($0) } ?? .null),
      ]
      return JSON.object(members + location).compactBytes + [UInt8(ascii: "\n")]
    }

    /// Reads the note of an operation's directory in the trash; nil if there is none, or if it has
    /// another format or another operation's ID.
    ///
    /// - Throws: `untrusted` if another user may have written it.
    static func read(
      in directory: borrowing Directory, of name: ByteString
    ) throws(SystemError) -> Note? {
      try ControlDirectory.read(file, in: directory, limit: 1 << 24).flatMap { Note($0, of: name) }
    }

    /// Reads the note as `read` does; nil also if that fails.
    init?(in directory: borrowing Directory, of name: ByteString) {
      guard let note = try? Self.read(in: directory, of: name) else { return nil }
      self = note
    }

    private init?(_ bytes: [UInt8], of name: ByteString) {
      guard let json = try? JSON(parsing: bytes), json["format"]?.integer == 1,
        let id = json["id"]?.string, ByteString(id) == name,
        let operation = json["operation"]?.string,
        let time = json["time"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
        let subjects = JournalRecord.paths(json["subjects"]),
        let elsewhere = JournalRecord.paths(json["elsewhere"])
      else { return nil }
      (self.id, self.operation, self.time) = (id, operation, time)
      (self.subjects, self.elsewhere) = (subjects, elsewhere)
      (device, saved) = (json.path(named: "device"), json["saved"]?.string)
    }
  }
}
