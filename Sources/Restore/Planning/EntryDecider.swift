internal import ArchiveStore
internal import DeviceTransaction
internal import SystemIO

/// Decides for each entry of the snapshot, by the existing one, whether that is kept or replaced.
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
    notesExisting = request.rules == nil && mode != .always
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
  /// as having the stored ones.
  private func hasSameFlags(
    _ entry: TreeEntry, in directory: borrowing Directory, _ name: ByteString?
  ) throws -> Bool {
    let present: UInt32?
    switch (entry.node, name) {
    case (.file, let name?): present = try? directory.fileUntouched(name).flags()
    case (.directory, let name?): present = try? directory.directory(name).flags()
    case (.directory, nil): present = try directory.flags()
    default: return true
    }
    guard let present else { return true }
    return (present ^ entry.flags) & FileFlags.compared == 0
  }

  private func isSame(_ stored: [Attribute], _ present: ExtendedAttributes) throws -> Bool {
    let names = try present.names().filter { !EntryMetadata.isOfHost($0) }
    guard names == stored.map(\.name) else { return false }
    for attribute in stored {
      if try present.value(of: attribute.name) != reader.value(of: attribute) { return false }
    }
    return true
  }
}
