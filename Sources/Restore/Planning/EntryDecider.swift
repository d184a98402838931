internal import ArchiveStore
internal import SystemIO

/// Decides whether an existing entry is kept or replaced by the stored one.
struct Comparison {
  let reader: RepositoryReader
  let mode: OverwriteMode

  /// Returns the action for an entry whose location is occupied: by a child of a directory, or by
  /// the directory itself if `name` is nil.
  func action(
    for entry: TreeEntry, _ status: FileStatus, in directory: borrowing Directory,
    _ name: ByteString?
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
