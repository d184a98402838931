internal import Codecs
internal import SandboxModel
package import SystemIO

/// Writes the data container of an app as the directory that Xcode puts into a device: `AppData`
/// with the data and `AppDataInfo.plist` with the app.
///
/// The directory appears in `finish`, with `AppDataInfo.plist` as its last entry. Without `finish`
/// nothing of it remains.
package struct XcodeDataSink: ~Copyable, EntrySink {
  /// The path of the directory, for messages, and the directory to write into.
  private let path: ByteString
  private let output: AtomicDirectory
  private let app: AppIdentity
  private var cursor: DirectoryCursor
  /// The directories, whose permissions and times are set when their contents are complete.
  private var directories: [ForeignEntry] = []
  private var content: Content?
  /// The position in the current file, and whether a hole precedes it.
  private var position: UInt64 = 0
  private var followsHole = false
  private var isSkipping = false
  package private(set) var skipped = SkippedEntries()
  /// The number of bytes of the files.
  package private(set) var size: UInt64 = 0

  static let action = "write the app's data"

  /// A file with its entry, until the next one begins.
  private struct Content: ~Copyable {
    let file: Descriptor
    let entry: ForeignEntry
  }

  /// Creates the directory, or takes an empty one.
  ///
  /// - Throws: `unrepresentable` if the directory is not empty; `system`.
  package init(path: ByteString, app: AppIdentity) throws(InterchangeError) {
    let output = try AtomicDirectory.make(path: path, Self.action)
    cursor = DirectoryCursor(root: try Self.makeData(in: output, path))
    (self.path, self.output, self.app) = (path, output, app)
  }

  private static func makeData(
    in output: AtomicDirectory, _ path: ByteString
  ) throws(InterchangeError) -> Directory {
    do throws(SystemError) {
      return try output.directory.makeDirectory(XcodeDataSource.data, permissions: 0o700)
    } catch { throw InterchangeError(error, action, subject: path) }
  }

  package mutating func add(_ entry: ForeignEntry) throws(InterchangeError) {
    try endContent()
    (position, followsHole, isSkipping) = (0, false, true)
    guard let path = inner(entry.path) else {
      if entry.kind != .directory || entry.path.count > 2 {
        skipped.append(
          path: entry.joinedPath, reason: "an app's data of Xcode has the data container only")
      }
      return
    }
    if case .file(let expected) = entry.kind { size += expected }
    do throws(SystemError) {
      try write(entry, at: path)
    } catch { throw failure(error) }
  }

  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    if isSkipping { return }
    let typed = bytes.assumingMemoryBound(to: UInt8.self)
    do throws(SystemError) {
      try content?.file.write(typed.span, at: position)
    } catch { throw failure(error) }
    position += UInt64(bytes.count)
    followsHole = false
  }

  package mutating func writeHole(_ count: UInt64) -> Bool {
    position += count
    followsHole = true
    return true
  }

  package mutating func finish() throws(InterchangeError) {
    try endContent()
    do throws(SystemError) {
      // Deepest first: what is created in a directory changes its time.
      for entry in directories.reversed() {
        let path = inner(entry.path) ?? []
        let bits = permissions(of: entry)
        try cursor.withDirectory(at: path) { (directory) throws(SystemError) in
          try directory.setModified(entry.modified)
          try directory.setPermissions(bits)
        }
      }
    } catch { throw failure(error) }
    let list: [UInt8]
    do throws(CodecError) { list = try app.appDataInfo.binary() } catch {
      throw InterchangeError(
        error, Self.action, subject: path.appending(XcodeDataSource.list))
    }
    do throws(SystemError) {
      let file = try output.directory.create(XcodeDataSource.list, permissions: 0o600)
      try file.write(list)
      try file.sync()
      try output.commit(last: XcodeDataSource.list)
    } catch { throw failure(error) }
  }
}

// MARK: - Entries

extension XcodeDataSink {
  /// Returns the path in the data container, or nil if the entry is elsewhere.
  private func inner(_ path: [ByteString]) -> [ByteString]? {
    let prefix = LogicalContainer.data(app.name).prefix.components
    return path.starts(with: prefix) ? Array(path.dropFirst(prefix.count)) : nil
  }

  private mutating func write(
    _ entry: ForeignEntry, at path: [ByteString]
  ) throws(SystemError) {
    guard let name = path.last else {
      if entry.kind == .directory { try begin(cursor.root.attributes, entry) }
      return
    }
    try cursor.move(to: Array(path.dropLast()), making: true)
    switch entry.kind {
    case .directory:
      try cursor.withDirectory { (directory) throws(SystemError) in
        try directory.createDirectory(name, permissions: 0o700)
      }
      try begin(attributes(of: name), entry)
    case .file:
      let file = try cursor.withDirectory { (directory) throws(SystemError) in
        try directory.create(name, permissions: 0o600)
      }
      set(file.attributes, entry)
      content = Content(file: file, entry: entry)
      isSkipping = false
    case .symlink(let target):
      try cursor.withDirectory { (directory) throws(SystemError) in
        try directory.createLink(name, to: target)
        try directory.setModified(entry.modified, of: name)
      }
      recordUnwritable(entry)
    case .hardLink(let target): try link(entry, name, to: target)
    case .fifo, .characterDevice, .blockDevice:
      skipped.append(path: entry.joinedPath, reason: "an app's data has no special files")
    }
  }

  /// Links a name to the first one of its file, which was written before.
  private mutating func link(
    _ entry: ForeignEntry, _ name: ByteString, to target: [ByteString]
  ) throws(SystemError) {
    guard let first = inner(target), let other = first.last else {
      skipped.append(
        path: entry.joinedPath, reason: "the file that it is a link to is in another container")
      return
    }
    var source = DirectoryCursor(root: try cursor.root.duplicate())
    try source.move(to: Array(first.dropLast()))
    try cursor.withDirectory { (directory) throws(SystemError) in
      try source.withDirectory { (linked) throws(SystemError) in
        try directory.createHardLink(name, to: other, in: linked)
      }
    }
  }

  /// Keeps the metadata of a directory until its content is complete.
  private mutating func begin(
    _ attributes: ExtendedAttributes, _ entry: ForeignEntry
  ) throws(SystemError) {
    directories.append(entry)
    set(attributes, entry)
  }

  private func attributes(of name: ByteString) -> ExtendedAttributes {
    cursor.withDirectory { (directory) in directory.attributes(of: name) }
  }

  /// Sets the attributes. Those that the volume or the kernel refuses are recorded.
  private mutating func set(_ attributes: ExtendedAttributes, _ entry: ForeignEntry) {
    for attribute in entry.attributes {
      do throws(SystemError) {
        try attributes.set(attribute.name, to: attribute.value)
      } catch {
        skipped.append(
          path: entry.joinedPath,
          reason: "its attribute '\(attribute.name)' cannot be set: \(error.reason)",
          isPropertyOnly: true)
      }
    }
  }

  private mutating func recordUnwritable(_ entry: ForeignEntry) {
    guard !entry.attributes.isEmpty else { return }
    skipped.append(
      path: entry.joinedPath, reason: "the attributes of a link are not written",
      isPropertyOnly: true)
  }

  /// Completes the open file.
  private mutating func endContent() throws(InterchangeError) {
    guard let ended = content.take() else { return }
    let bits = permissions(of: ended.entry)
    do throws(SystemError) {
      if followsHole { try ended.file.truncate(to: position) }
      try ended.file.setPermissions(bits)
      try ended.file.setModified(ended.entry.modified)
    } catch { throw failure(error) }
  }

  /// Returns the permissions without set-user-ID and set-group-ID: the files get another owner.
  private mutating func permissions(of entry: ForeignEntry) -> UInt16 {
    if entry.permissions & 0o6000 != 0 {
      skipped.append(
        path: entry.joinedPath, reason: "its set-user-ID and set-group-ID bits are not written",
        isPropertyOnly: true)
    }
    return entry.permissions & 0o1777
  }

  private func failure(_ error: SystemError) -> InterchangeError {
    InterchangeError(error, Self.action, subject: path)
  }
}
