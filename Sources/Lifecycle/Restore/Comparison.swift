internal import ArchiveStore
internal import SystemIO

/// Decides by what is there and what is stored which of them stays.
struct Comparison {
  let reader: RepositoryReader
  let mode: OverwriteMode

  /// What is to be done where something stands in an entry's place: a child of a directory, or the
  /// directory itself.
  func action(
    for entry: TreeEntry, _ status: FileStatus, in directory: borrowing Directory,
    _ name: ByteString?
  ) throws -> RestoreAction {
    switch mode {
    case .always: return .replace
    case .never: return .leave
    case .ifChanged:
      return try isSame(entry, status, in: directory, name) ? .same : .replace
    case .ifNewer:
      if status.modified < entry.modified { return .replace }
      return try isSame(entry, status, in: directory, name) ? .same : .leave
    }
  }

  /// Whether nothing but a look at the content could find a difference. Owners count only where they
  /// could be set, and so do the bits that are for them alone.
  private func isSame(
    _ entry: TreeEntry, _ status: FileStatus, in directory: borrowing Directory, _ name: ByteString?
  ) throws -> Bool {
    guard status.kind == entry.node.kind, status.modified == entry.modified,
      status.kind == .symlink
        || status.permissions
          == SetIDBits.kept(entry.permissions, entry.owner, entry.group, on: status),
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

  /// Asked last, because it opens the file. What cannot be opened, or has no flags, counts as having
  /// those that are stored.
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
    let names = try present.names().filter { !AttributeNames.isOfHost($0) }
    guard names == stored.map(\.name) else { return false }
    for attribute in stored {
      if try present.value(of: attribute.name) != reader.value(of: attribute) { return false }
    }
    return true
  }
}

/// Which extended attributes belong to the host and not to what is stored.
enum AttributeNames {
  /// The label of a host's security policy, which means nothing on another.
  static func isOfHost(_ name: ByteString) -> Bool { name == "security.selinux" }
}
