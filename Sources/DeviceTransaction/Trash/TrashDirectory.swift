internal import SandboxModel
package import SystemIO

/// The directory for the entries that an operation replaces or removes in one container. It is in
/// the operation's directory in the device's trash, by logical path; a container on another volume
/// has a trash of its own there, because entries are never moved across volumes.
package final class TrashDirectory {
  /// The path of the directory for the container's entries.
  package let path: ByteString
  private var ladder: DirectoryCursor
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
    let own = try trash.makeDirectory(ByteString(record.id), permissions: 0o700)
    var note = TrashNote(in: own, of: ByteString(record.id)) ?? TrashNote(record)
    if let saved { note.saved = saved }
    let isNear = try Self.canMove(from: probe, to: own)
    var place = ControlDirectory.path(ControlDirectory.trash, root: root)
    if !isNear { place = ControlDirectory.path(ControlDirectory.trash, root: directory.path) }
    place = place.appending(ByteString(record.id))
    if !isNear, !note.elsewhere.contains(place) { note.elsewhere.append(place) }
    // The note is written before the entries that it describes.
    try ControlOwner.give(own.path)
    try AtomicFile.write(note.bytes, as: TrashNote.file, in: own, permissions: 0o600)
    try own.inheritOwner(TrashNote.file)
    try trash.sync()
    path = place.appending(container)
    self.note = OpenedNote(record.id, root: root)
    ladder = DirectoryCursor(root: try Directory.make(resolved: path, permissions: 0o700))
    try ControlOwner.give(path)
  }

  /// The directory beside those of the containers for new entries that a rollback removed: another
  /// process may have written into them.
  static let rolledBack: ByteString = "taken-back"

  /// Moves a child of a directory to a path below the container's directory, under another name if
  /// one is given.
  package func keep(
    _ name: ByteString, of directory: borrowing Directory, at path: [ByteString], leaving: Bool,
    as newName: ByteString? = nil
  ) throws(SystemError) {
    _ = try ladder.withDirectory(at: path, making: true) { place throws(SystemError) in
      try directory.keep(name, in: place, as: newName ?? name, leaving: leaving, note)
    }
  }

  /// A name of the program, so that a file left by a killed run is not mistaken for an app's.
  private static let probePrefix = ".sandboxctl-restore-probe-"

  /// Whether a name in an operation's directory is that of a probe for moves.
  static func isProbe(_ name: ByteString) -> Bool { name.bytes.starts(with: probePrefix.utf8) }

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
