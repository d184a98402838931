internal import SystemIO

/// Writes a manifest to a directory, through directory descriptors and without following links.
struct TreeWriter: ~Copyable {
  private let root: Directory
  private(set) var report = SampleDevice.Report()

  init(root: consuming Directory) { self.root = root }

  /// Creates everything: directories first, then files, then hard links, and finally sets the times
  /// of the directories.
  mutating func make(_ manifest: Manifest) throws(SystemError) {
    for entry in manifest.entries where entry.content == .directory { try makeDirectory(entry) }
    for entry in manifest.entries { try makeFile(entry) }
    for entry in manifest.entries {
      if case .hardLink(let file) = entry.content { try makeHardLink(entry.path, of: file) }
    }
    for entry in manifest.entries where entry.content == .directory { try setTime(entry) }
    try root.setModified(manifest.rootModified)
  }

  /// Writes the entries that differ between two manifests and removes those absent in the second.
  mutating func change(from start: Manifest, to manifest: Manifest) throws(SystemError) {
    let before = Dictionary(start.entries.map { ($0.path, $0) }) { first, _ in first }
    var touched = Set(manifest.absent.map(\.parent))
    for path in manifest.absent { try remove(path) }
    for entry in manifest.entries where before[entry.path] != entry {
      guard entry.content != .directory else { continue }
      try makeFile(entry, replacing: true)
      touched.insert(entry.parent)
    }
    for entry in manifest.entries where touched.contains(entry.path) { try setTime(entry) }
  }

  /// Opens a directory below the root.
  private func directory(_ path: ByteString) throws(SystemError) -> Directory {
    var directory = try root.duplicate()
    for name in path.components { directory = try directory.directory(name) }
    return directory
  }

  private mutating func makeDirectory(_ entry: ManifestEntry) throws(SystemError) {
    let parent = try directory(entry.parent)
    try parent.createDirectory(entry.name)
    try parent.setPermissions(entry.permissions, of: entry.name)
    try set(entry.marks, on: parent.attributes(of: entry.name))
    report.entries += 1
  }

  /// Creates a file or a symbolic link. A replacement is completed under a temporary name, so that
  /// other links to a replaced file are not changed.
  private mutating func makeFile(
    _ entry: ManifestEntry, replacing: Bool = false
  ) throws(SystemError) {
    let parent = try directory(entry.parent)
    switch entry.content {
    case .directory, .hardLink: return
    case .link(let target):
      try parent.createLink(entry.name, to: target)
      try parent.setModified(entry.modified, of: entry.name)
    case .file(let bytes):
      let piece = ManifestEntry.Piece(offset: 0, bytes: bytes)
      try write([piece], of: entry, in: parent, replacing: replacing)
    case .sparse(_, let pieces):
      try write(pieces, of: entry, in: parent, replacing: replacing)
    }
    report.entries += 1
    report.bytes += entry.size
  }

  private mutating func write(
    _ pieces: [ManifestEntry.Piece], of entry: ManifestEntry, in parent: borrowing Directory,
    replacing: Bool
  ) throws(SystemError) {
    let name: ByteString = replacing ? ".sandboxctl-sample.tmp" : entry.name
    if replacing, try parent.statusIfPresent(name) != nil { try parent.remove(name) }
    let file = try parent.create(name, permissions: 0o600)
    try file.setPermissions(0o600)  // the umask may have removed permissions needed below
    for piece in pieces {
      try file.seek(to: piece.offset)
      try file.write(piece.bytes)
    }
    try file.truncate(to: entry.size)
    try set(entry.marks, on: parent.attributes(of: name))
    try file.setPermissions(entry.permissions)
    try file.setModified(entry.modified)
    try file.close()
    if replacing { try parent.rename(name, to: entry.name, in: parent) }
  }

  private mutating func makeHardLink(
    _ path: ByteString, of file: ByteString
  ) throws(SystemError) {
    guard let name = path.lastComponent, let existing = file.lastComponent else { return }
    try directory(path.parent).createHardLink(name, to: existing, in: try directory(file.parent))
    report.entries += 1
  }

  /// Sets marks, and counts those that the file system does not support.
  private mutating func set(
    _ marks: [ManifestEntry.Mark], on attributes: ExtendedAttributes
  ) throws(SystemError) {
    for mark in marks {
      do {
        try attributes.set(mark.name, to: mark.value)
      } catch {
        guard error.isUnsupported else { throw error }
        report.marksExcluded += 1
      }
    }
  }

  private func setTime(_ entry: ManifestEntry) throws(SystemError) {
    try directory(entry.path).setModified(entry.modified)
  }

  /// Removes a file. A missing file is not an error.
  private mutating func remove(_ path: ByteString) throws(SystemError) {
    guard let name = path.lastComponent else { return }
    do {
      try directory(path.parent).remove(name)
      report.removed += 1
    } catch {
      guard error.isMissing else { throw error }
    }
  }
}
