internal import ArchiveStore
internal import SystemIO

extension RepositoryReader {
  /// Makes one entry that is no folder, with its metadata. A file whose data is damaged is removed
  /// again.
  func create(
    _ entry: TreeEntry, named name: ByteString, in folder: borrowing Folder
  ) throws -> EntryRemarks {
    switch entry.node {
    case .file(let content):
      do {
        return try createFile(entry, content, named: name, in: folder)
      } catch {
        try? folder.remove(name)
        throw error
      }
    case .symlink(let target): try folder.createLink(name, to: target)
    case .fifo: try folder.createSpecial(name, kind: .fifo, permissions: 0o600)
    case .socket: try folder.createSpecial(name, kind: .socket, permissions: 0o600)
    case .characterDevice(let device):
      try folder.createSpecial(
        name, kind: .characterDevice, permissions: 0o600, device: device.linux)
    case .blockDevice(let device):
      try folder.createSpecial(name, kind: .blockDevice, permissions: 0o600, device: device.linux)
    case .directory: break
    }
    return setMetadata(of: entry, named: name, in: folder)
  }

  private func createFile(
    _ entry: TreeEntry, _ content: Content, named name: ByteString, in folder: borrowing Folder
  ) throws -> EntryRemarks {
    let file = try folder.create(name, permissions: 0o600)
    var end: UInt64 = 0
    try readContent(content) { offset, bytes in
      if offset != end { try file.seek(to: offset) }
      try file.write(bytes)
      end = offset + UInt64(bytes.count)
    }
    if end < content.size { try file.truncate(to: content.size) }
    let remarks = setMetadata(of: entry, on: file)
    try file.close()
    return remarks
  }
}

extension Folder {
  /// Makes `name` another name of the file at `first`, a path below `root`.
  func link(_ name: ByteString, to first: ByteString, below root: borrowing Folder)
    throws(SystemError)
  {
    var parts = first.components
    guard let last = parts.popLast() else { return }
    var folder = try root.duplicate()
    for part in parts { folder = try folder.folder(part) }
    try createHardLink(name, to: last, in: folder)
  }
}
