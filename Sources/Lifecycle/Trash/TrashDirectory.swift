internal import SandboxModel
internal import SystemIO

/// Where what an operation replaces or removes in one container is kept: below the operation's directory
/// in the device's trash, by logical paths; of a container on another volume in a trash of its own
/// there, since nothing is moved across volumes.
final class TrashDirectory {
  /// The directory for the container's things.
  let path: ByteString
  private let ladder: PathLadder
  private let note: OpenedNote

  /// Makes the operation's directory, with its note, and the one for a container in it.
  ///
  /// - Parameters:
  ///   - container: the container's logical path.
  ///   - saved: the snapshot that was made before, as its note says.
  ///   - folder: the directory that steps work in.
  ///   - probe: a directory below it, closed to others, in which a name may be made.
  init(
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
    // The note is there before anything that it tells of.
    try ControlOwner.give(own.path)
    try AtomicFile.write(note.bytes, as: TrashNote.file, in: own, permissions: 0o600)
    try ControlOwner.give(TrashNote.file, in: own)
    try trash.sync()
    path = place.appending(container)
    self.note = OpenedNote(record.id, root: root)
    ladder = PathLadder(root: try Directory.make(resolved: path, permissions: 0o700))
    try ControlOwner.give(path)
  }

  /// The directory, next to the containers' own, for what came and had to go again when an operation was
  /// taken back: somebody may have written into it.
  static let rolledBack: ByteString = "taken-back"

  /// Keeps a child of a directory at a path below the container's, under another name if one is given.
  func keep(
    _ name: ByteString, of directory: borrowing Directory, at path: [ByteString], leaving: Bool,
    as newName: ByteString? = nil
  ) throws(SystemError) {
    _ = try ladder.withDirectory(path, making: true) { place throws(SystemError) in
      try directory.keep(name, in: place, as: newName ?? name, leaving: leaving, note)
    }
  }

  /// One of the program's own names, so that nobody takes what a kill leaves for something of an app.
  private static let probePrefix = ".sandboxctl-restore-probe-"

  /// Whether a name in an operation's directory is one that was only to try whether it can be moved there.
  static func isProbe(_ name: ByteString) -> Bool { name.bytes.starts(with: probePrefix.utf8) }

  /// Whether what is in one directory can be moved to another: on one volume, and through one mount of it.
  static func canMove(
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
