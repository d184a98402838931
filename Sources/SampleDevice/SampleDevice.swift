// The sample device: a small iOS simulator device with four apps, for trying commands and for
// tests. It is a list of entries (Manifest), computed by pure functions of the day and written by
// TreeWriter.
//
// The same day yields the same names, bytes, modes, times and attributes on every machine, whatever
// the umask; only inodes, owners, change times and hole layouts differ. Databases and pictures are
// valid: SQLite reads the former, and any viewer the latter. The apps' executables do nothing.
//
// Not guaranteed: a complete sample after a failure (nothing is removed then), or an identical
// sample in other versions of this program.
package import SystemIO

/// A deterministic sample device in the layout of the iOS simulator.
package enum SampleDevice {
  /// The last day of changes.
  package static var lastDay: Int { ContainerPlan.lastDay }

  /// Creates a sample in a directory that does not exist or is empty, in its state after `day` days
  /// of changes: 0 to `lastDay`.
  package static func make(at path: ByteString, day: Int = 0) throws(SampleError) -> Report {
    try check(day, 0...lastDay)
    let manifest = try Manifest(day: day)
    var writer = TreeWriter(root: try emptyDirectory(path))
    do {
      try writer.make(manifest)
    } catch {
      throw SampleError(error, hint: "remove '\(path)', which is incomplete, and try again")
    }
    return writer.report
  }

  /// Brings a sample from any day to its state after `day` days of changes, 1 to `lastDay`:
  /// documents are edited, added and deleted, databases and preferences change, caches grow.
  /// Changed files are replaced completely; everything else is left unchanged.
  package static func change(at path: ByteString, day: Int) throws(SampleError) -> Report {
    try check(day, 1...lastDay)
    let (start, manifest) = (try Manifest(day: 0), try Manifest(day: day))
    var writer = TreeWriter(root: try sample(path, start))
    do {
      try writer.change(from: start, to: manifest)
    } catch {
      throw SampleError(
        error, hint: "the sample is incomplete: create a new one in another directory")
    }
    return writer.report
  }

  /// Returns the sample's databases with the rows expected after `day` days.
  package static func databases(day: Int = 0) throws(SampleError) -> [SampleDatabase] {
    try check(day, 0...lastDay)
    return try Manifest(day: day).databases
  }

  private static func check(_ day: Int, _ days: ClosedRange<Int>) throws(SampleError) {
    guard !days.contains(day) else { return }
    throw SampleError(
      .noSuchDay, "apply the changes of day", on: ByteString(String(day)), reason: "no such day",
      hint: "use a day from \(days.lowerBound) to \(days.upperBound)")
  }
}

extension SampleDevice {
  /// The result of creating or changing a sample.
  package struct Report: Hashable, Sendable {
    /// The number of entries that were created or replaced, including directories and links.
    package internal(set) var entries = 0
    /// The number of entries that were removed.
    package internal(set) var removed = 0
    /// The total size of the files that were created in bytes, including holes.
    package internal(set) var bytes: UInt64 = 0
    /// The number of exclusion marks that the sample lacks because the file system does not support
    /// them.
    package internal(set) var marksExcluded = 0

    /// The notes for the user.
    package var notes: [String] {
      guard marksExcluded > 0 else { return [] }
      return [
        """
        the file system does not support user extended attributes: \(marksExcluded) exclusion marks \
        are omitted, and the entries they would mark count as unmarked
        """
      ]
    }
  }
}

// MARK: - The directory

extension SampleDevice {
  /// Opens the directory for a new sample, creating it and missing ancestors.
  private static func emptyDirectory(_ path: ByteString) throws(SampleError) -> Directory {
    do {
      let directory = try Directory.open(path: path)
      if try directory.isEmpty() { return directory }
    } catch {
      guard error.isMissing, path.lastComponent != nil else { throw SampleError(error) }
      return try newDirectory(path)
    }
    throw SampleError(
      .notEmpty, "create a sample device in", on: path, reason: "the directory is not empty",
      hint: "use a directory that does not exist or is empty; nothing was changed")
  }

  /// Creates the directory. The mode is set before it is opened, because the umask may prevent
  /// that.
  private static func newDirectory(_ path: ByteString) throws(SampleError) -> Directory {
    do {
      let parent = try Directory.make(path: path.dirname)
      let name = path.lastComponent ?? "."
      try parent.createDirectory(name)
      try parent.setPermissions(0o755, of: name)
      return try parent.directory(name)
    } catch {
      throw SampleError(error)
    }
  }

  /// Opens the directory of a sample, identified by its device file.
  private static func sample(_ path: ByteString, _ start: Manifest) throws(SampleError) -> Directory
  {
    do {
      let root = try Directory.open(path: path)
      if try start.isDeviceFile(in: root) { return root }
    } catch {
      throw SampleError(error)
    }
    throw SampleError(
      .notASample, "change the sample device in", on: path,
      reason: "it contains no sample device", hint: "create one: sandboxctl sample DIR")
  }
}

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

  private mutating func makeDirectory(_ entry: SampleEntry) throws(SystemError) {
    let parent = try directory(entry.parent)
    try parent.createDirectory(entry.name)
    try parent.setPermissions(entry.permissions, of: entry.name)
    try set(entry.marks, on: parent.attributes(of: entry.name))
    report.entries += 1
  }

  /// Creates a file or a symbolic link. A replacement is completed under a temporary name, so that
  /// other links to a replaced file are not changed.
  private mutating func makeFile(
    _ entry: SampleEntry, replacing: Bool = false
  ) throws(SystemError) {
    let parent = try directory(entry.parent)
    switch entry.content {
    case .directory, .hardLink: return
    case .link(let target):
      try parent.createLink(entry.name, to: target)
      try parent.setModified(entry.modified, of: entry.name)
    case .file(let bytes):
      let piece = SampleEntry.Piece(offset: 0, bytes: bytes)
      try write([piece], of: entry, in: parent, replacing: replacing)
    case .sparse(_, let pieces):
      try write(pieces, of: entry, in: parent, replacing: replacing)
    }
    report.entries += 1
    report.bytes += entry.size
  }

  private mutating func write(
    _ pieces: [SampleEntry.Piece], of entry: SampleEntry, in parent: borrowing Directory,
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
    _ marks: [SampleEntry.Mark], on attributes: ExtendedAttributes
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

  private func setTime(_ entry: SampleEntry) throws(SystemError) {
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
