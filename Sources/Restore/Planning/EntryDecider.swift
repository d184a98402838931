internal import ArchiveStore
internal import Codecs
internal import DeviceTransaction
internal import SystemIO

/// Decides for each entry of the snapshot whether the existing entry is kept or replaced.
struct EntryDecider {
  /// The decision about an entry.
  struct Decision {
    var action: PlannedTree.Action
    var isMerged = false
    var changesKind = false
    /// Whether the existing entry is kept under another name.
    var isMovedAside = false
    /// The contents of a directory that a file replaces.
    var replacedDirectory: RestoreTotals?
    /// The existing entry, unless it may be replaced even if it changes.
    var existing: PlannedTree.Existing?
    /// The identity of the existing file, if it is kept.
    var identity: FileIdentity?
  }

  private let reader: RepositoryReader
  private let request: RestoreRequest
  private let mode: OverwriteMode
  private let notesExisting: Bool
  /// The proof that unchanged files have the stored content; nil if it is not required.
  var proof: ContentProof?

  init(_ request: RestoreRequest, from reader: RepositoryReader) {
    self.reader = reader
    self.request = request
    mode = request.overwrite ?? .always
    // A device's trash keeps replaced entries.
    notesExisting = request.keepsChanges
  }

  /// Decides about an entry by the existing one in the target's directory at a depth.
  ///
  /// - Throws: `PresentTarget.Conflict` if the existing entry prevents the restore.
  mutating func decide(
    _ entry: TreeEntry, named name: ByteString, at depth: Int, in target: inout PresentTarget
  ) throws -> Decision {
    try target.cursor?.ascend(to: depth)
    let protected = target.protected
    var proof = self.proof.take()
    defer { self.proof = proof }
    let found = try target.cursor?.withDirectory {
      directory -> (FileStatus, PlannedTree.Action)? in
      guard let status = try directory.statusIfPresent(name) else { return nil }
      if status.isMountPoint { throw PresentTarget.Conflict.mount }
      if protected.contains(status.identity) { throw PresentTarget.Conflict.repository }
      var action = try self.action(for: entry, status, in: directory, named: name)
      if action == .same,
        try proof?.hasBytes(of: entry, status, at: depth, in: directory, name) == false
      {
        action = mode == .ifNewer ? .leave : .replace
      }
      return (status, action)
    }
    guard let (status, action) = found ?? nil else { return Decision(action: .create) }
    let existing = notesExisting ? PlannedTree.Existing(status) : nil
    switch (entry.node.kind == .directory, status.kind == .directory) {
    case (true, true):
      proof?.enter(status, at: depth)
      // It is merged into, except for an empty one that a new target replaces.
      if request.overwrite == nil { return Decision(action: .replace) }
      try target.cursor?.descend(name)
      return Decision(action: action, isMerged: true)
    case (false, false):
      return Decision(
        action: action, existing: existing, identity: action == .same ? status.identity : nil)
    case (true, false):
      guard action == .replace else { throw PresentTarget.Conflict.kept(status.kind) }
      return Decision(action: .replace, changesKind: true, existing: existing)
    case (false, true):
      guard action == .replace else { throw PresentTarget.Conflict.kept(status.kind) }
      return Decision(
        action: .replace, changesKind: true,
        replacedDirectory: try target.totals(ofReplaced: name, deletes: request.deletes),
        existing: existing)
    }
  }

  /// Returns the action for an entry whose location is occupied: by a child of a directory, or by
  /// the directory itself if `name` is nil.
  func action(
    for entry: TreeEntry, _ status: FileStatus, in directory: borrowing Directory,
    named name: ByteString?
  ) throws -> PlannedTree.Action {
    switch mode {
    case .always: return .replace
    case .never: return .leave
    case .ifChanged:
      return try isSame(entry, as: status, in: directory, named: name) ? .same : .replace
    case .ifNewer:
      if status.modified < entry.modified { return .replace }
      return try isSame(entry, as: status, in: directory, named: name) ? .same : .leave
    }
  }

  /// Whether the existing entry matches the stored one in everything except its content. Owners,
  /// and the mode bits that depend on them, count only if this process can set them.
  private func isSame(
    _ entry: TreeEntry, as status: FileStatus, in directory: borrowing Directory,
    named name: ByteString?
  ) throws -> Bool {
    guard status.kind == entry.node.kind, status.modified == entry.modified,
      status.kind == .symlink
        || status.permissions
          == EntryMetadata.SetIDBits.kept(
            entry.permissions, owner: entry.owner, group: entry.group, on: status),
      Host.userID != 0 || (status.user == entry.owner && status.group == entry.group)
    else { return false }
    switch entry.node {
    case .file(let content): if status.size != content.size { return false }
    case .characterDevice(let device), .blockDevice(let device):
      if status.specialDevice != device.linux { return false }
    case .symlink(let target):
      if try name.map({ try directory.target(of: $0) }) != target { return false }
    case .directory, .fifo, .socket: break
    }
    return try isSame(
      entry.attributes, name.map { directory.attributes(of: $0) } ?? directory.attributes)
      && hasSameFlags(entry, in: directory, name)
  }

  /// Checked last, because it opens the file. An entry that cannot be opened or has no flags counts
  /// as having the stored ones; so do flags that cannot be read.
  private func hasSameFlags(
    _ entry: TreeEntry, in directory: borrowing Directory, _ name: ByteString?
  ) throws -> Bool {
    let present: (bits: UInt32, known: UInt32)?
    switch (entry.node, name) {
    case (.file, let name?): present = try? directory.fileUntouched(name).knownFlags()
    case (.directory, let name?): present = try? directory.directory(name).knownFlags()
    case (.directory, nil): present = try directory.knownFlags()
    default: return true
    }
    guard let present else { return true }
    return (present.bits ^ entry.flags) & present.known & FileFlags.compared == 0
  }

  private func isSame(_ stored: [Attribute], _ present: ExtendedAttributes) throws -> Bool {
    let data = stored.filter { !HostAttribute.isKept($0.name) }
    let names = try present.names().filter { !HostAttribute.isKept($0) }
    guard names == data.map(\.name) else { return false }
    for attribute in data {
      if try present.value(of: attribute.name) != reader.value(of: attribute) { return false }
    }
    for attribute in stored where HostAttribute.isKept(attribute.name) {
      let value = try reader.value(of: attribute)
      if HostAttribute.isIgnored(attribute.name, value) { continue }
      if try present.value(of: attribute.name) != value { return false }
    }
    return true
  }
}

/// Verifies that a file that looks unchanged has the stored content. A rollback needs this, because
/// it has to restore every byte (docs/update.md, "Rollback").
///
/// A file is not read if its change time, and that of each directory above it in the container, is
/// before the start of the snapshot: a program can set a file's modification time but not its
/// change time, and a rename updates the change time. All other files are read and checked against
/// the hashes of the stored pieces; this reads only piece lists from the repository.
struct ContentProof {
  private let reader: RepositoryReader
  private let begin: Timestamp
  /// The number of seconds by which a change must precede the snapshot; nil if the volume's
  /// timestamps are unreliable.
  private let margin: Double?
  /// Whether each directory down to the current one is unchanged, by depth. The container's own
  /// directory is not examined, because an update renames it.
  private var areStill: [Bool] = [true]
  private var buffer: [UInt8] = []

  /// Creates a proof for the files below a directory.
  ///
  /// - Parameters:
  ///   - begin: the start of the snapshot.
  ///   - now: the start of the operation; a snapshot with a later start proves nothing.
  init(
    _ reader: RepositoryReader, since begin: Timestamp, now: Timestamp, in root: borrowing Directory
  ) {
    self.reader = reader
    self.begin = begin
    let times = (try? root.volumeTimes()) ?? .loose
    margin = times == .exact && begin <= now ? Host.writebackDelay : nil
  }

  /// Enters a child of the directory at a depth.
  mutating func enter(_ status: FileStatus, at depth: Int) {
    areStill.removeLast(max(0, areStill.count - depth - 1))
    areStill.append((areStill.last ?? false) && isStill(status))
  }

  /// Whether a file in the directory at a depth has the stored content.
  ///
  /// - Throws: `SystemError` or `StoreError` if the file or a piece list cannot be read.
  mutating func hasBytes(
    of entry: TreeEntry, _ status: FileStatus, at depth: Int, in directory: borrowing Directory,
    _ name: ByteString
  ) throws -> Bool {
    guard case .file(let content) = entry.node else { return true }
    if areStill.indices.contains(depth), areStill[depth], isStill(status) { return true }
    let file = try directory.fileUntouched(name)
    var isSame = true
    try reader.forEachPiece(of: content) { offset, piece in
      if isSame { isSame = try holds(piece, at: offset, file) }
    }
    return isSame
  }

  private func isStill(_ status: FileStatus) -> Bool {
    margin.map { begin.since(status.changed) > $0 } ?? false
  }

  private mutating func holds(
    _ piece: Piece, at offset: UInt64, _ file: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: 1 << 18) }
    var done: UInt64 = 0
    var hash = Blake2b()
    while done < piece.length {
      let wanted = Int(min(UInt64(buffer.count), piece.length - done))
      guard try file.read(into: &buffer, from: 0, to: wanted, at: offset + done) == wanted else {
        return false
      }
      switch piece {
      case .blob: hash.update(wanted == buffer.count ? buffer : Array(buffer[..<wanted]))
      case .hole: if buffer[..<wanted].contains(where: { $0 != 0 }) { return false }
      }
      done += UInt64(wanted)
    }
    guard case .blob(let digest, _) = piece else { return true }
    return hash.finish() == digest
  }
}
