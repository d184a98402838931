internal import ArchiveStore
internal import Codecs
internal import DatabaseCapture
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

extension BackupWorker {
  /// The way in which the bytes of a file are handled.
  enum ReadMode {
    /// The bytes are stored without a check.
    case plain
    /// The bytes are stored, unless they are a database's.
    case checked
    /// The bytes of a small file are held (`SmallFileBatch`), others are stored, unless they are a
    /// database's.
    case batched

    /// Checks the first bytes of a file.
    ///
    /// - Throws: `DatabaseFound` for a database, except in the mode `plain`.
    func check(_ bytes: Span<UInt8>) throws {
      if self != .plain { try DatabaseFound.check(bytes) }
    }
  }

  /// The content of a file after reading.
  enum ReadContent {
    case stored(Content)
    /// The range of the bytes in the batch of small files.
    case batched(Range<Int>)

    /// The size in bytes.
    var size: UInt64 {
      switch self {
      case .stored(let content): content.size
      case .batched(let range): UInt64(range.count)
      }
    }

    var stored: Content? { if case .stored(let content) = self { content } else { nil } }
    var batchStart: Range<Int>? { if case .batched(let range) = self { range } else { nil } }
  }

  /// A buffer for files that are read into memory as a whole. Each thread has one; it has 1 MiB
  /// until a larger file is read.
  final class ReadBuffer {
    private var bytes = [UInt8](repeating: 0, count: size)

    /// The initial size in bytes: large enough that the cost of a call is small, small enough for
    /// the CPU cache.
    static let size = 1 << 20

    /// Reads a file and passes its bytes to `store`; returns the content.
    ///
    /// - Throws: `DatabaseFound` if the file begins like a database and the mode checks for that.
    func store(
      _ size: UInt64, of file: borrowing Descriptor, mode: ReadMode,
      with store: (Span<UInt8>) throws -> Content
    ) throws -> Content {
      try Self.store(&bytes, size: Int(size), of: file, mode: mode, with: store)
    }

    private static func store(
      _ bytes: inout [UInt8], size: Int, of file: borrowing Descriptor, mode: ReadMode,
      with store: (Span<UInt8>) throws -> Content
    ) throws -> Content {
      if bytes.count < size {
        bytes = [UInt8](repeating: 0, count: (size + Self.size - 1) / Self.size * Self.size)
      }
      let count = try file.read(into: &bytes, from: 0, to: size, at: 0)
      let content = bytes.span.extracting(0..<count)
      try mode.check(content)
      return try store(content)
    }
  }

  /// Reads an entry of a directory.
  borrowing func readEntry(
    _ index: Int, at path: ByteString, of directory: DirectoryContext,
    in opened: borrowing Directory, mode: ReadMode
  ) throws -> ReadEntry {
    let status = directory.scan.entries[index].status
    let name = directory.scan.name(index)
    if status.kind == .file {
      return try readFile(index, named: name, at: path, of: directory, in: opened, mode: mode)
    }
    let node = try node(of: name, status, opened)
    let metadata = try readMetadata(opened.attributes(of: name), path) { nil }
    return ReadEntry(
      entry: TreeEntry(
        name: name, node: node, status: status, attributes: metadata.attributes,
        linkGroup: run.links.name(of: status.identity)),
      status: status,
      isStable: metadata.isWhole
        && ChangeRules.isStable(status, readAt: run.now, in: run.clock(of: directory.tree.number)))
  }

  /// Returns the entry of a file whose content is already stored. For a file in a bundle under a
  /// new UUID, the attributes and flags are read, because no comparison covered them; for a hard
  /// link, the change time covers them.
  mutating func readStored(
    _ stored: TreeEntry, _ index: Int, in directory: DirectoryContext
  ) throws -> ReadEntry? {
    let status = directory.scan.entries[index].status
    var metadata = StoredMetadata(attributes: stored.attributes, flags: stored.flags)
    if status.links == 1 {
      guard let read = try readMetadata(ofFile: index, in: directory) else { return nil }
      metadata = read
    }
    var entry = stored
    (entry.attributes, entry.flags) = (metadata.attributes, metadata.flags)
    let clock = run.clock(of: directory.tree.number)
    let isStable =
      metadata.isWhole && ChangeRules.isStable(status, readAt: clock.start, in: clock)
    return ReadEntry(entry: entry, status: status, isStable: isStable)
  }

  /// Adds the version of the last snapshot of a file that cannot be read while the device is
  /// locked, or records the file as missing. The next run reads it, whatever its status.
  func keepEarlier(
    _ index: Int, _ file: WaitingFile, in context: WorkItemContext
  ) throws {
    let directory = context.directory
    let id = directory.id(index)
    let size = directory.scan.entries[index].status.size
    let waiting = LockedFile(
      path: directory.path.appending(directory.scan.name(index)), bytes: size,
      protection: file.protection, hasEarlier: file.earlier != nil)
    run.record { $0.addWaiting(id, waiting) }
    guard let earlier = file.earlier else { return context.results.addUnreadable(index) }
    context.results.add(index, try earlier.encoded(), isStable: false)
    if let stored = earlier.storedSize, stored != size { run.record { $0.sizes[id] = stored } }
    for companion in file.companions {
      context.results.add(
        WorkItem.Results.Extra(
          name: companion.name, encoded: try companion.encoded(),
          status: directory.scan.entries[index].status, isStable: false))
      run.record { $0.addExtra(of: id, size: companion.storedSize ?? 0) }
    }
  }

  /// Reads a file's attributes and flags; returns nil and records the problem if that fails.
  private mutating func readMetadata(
    ofFile index: Int, in directory: DirectoryContext
  ) throws -> StoredMetadata? {
    let name = directory.scan.name(index)
    let path = directory.path.appending(name)
    do {
      return try inDirectory(directory) { worker, opened in
        let file = try opened.fileUntouched(name)
        guard try file.status().identity == directory.scan.entries[index].status.identity else {
          throw SystemError.replaced(path)
        }
        return try worker.readMetadata(file.attributes, path) { () throws(SystemError) in
          try file.flags()
        }
      }
    } catch let error as SystemError {
      run.addUnreadable(directory.id(index), at: path, error: error)
      return nil
    }
  }

  private borrowing func node(
    of name: ByteString, _ status: FileStatus, _ directory: borrowing Directory
  ) throws(SystemError) -> Node {
    switch status.kind {
    case .symlink: .symlink(target: try directory.target(of: name))
    case .fifo: .fifo
    case .socket: .socket
    case .characterDevice: .characterDevice(TreeEntry.DeviceNumber(linux: status.specialDevice))
    case .blockDevice: .blockDevice(TreeEntry.DeviceNumber(linux: status.specialDevice))
    case .file, .directory: throw SystemError.replaced(name)
    }
  }

  // MARK: - Files

  private borrowing func readFile(
    _ index: Int, named name: ByteString, at path: ByteString, of directory: DirectoryContext,
    in opened: borrowing Directory, mode: ReadMode
  ) throws -> ReadEntry {
    run.request.counters.begin(path)
    let time = run.now
    let file = try opened.fileUntouched(name)
    run.request.counters.didOpen()
    let clock = run.clock(of: directory.tree.number)
    let scanned = directory.scan.entries[index].status
    // Checked only if the answer matters: for a recently changed file that now has no writer.
    let hadNoWriter =
      !ChangeRules.isStable(scanned, readAt: time, in: clock)
      && ChangeRules.isStable(scanned, readAt: time, in: clock, hadNoWriter: true)
      && file.hasNoWriter
    let isMapped = MappedDatabases.contain(name, beside: directory)
    let (content, status, wasUnchanged) = try readUntilUnchanged(
      file, at: path, of: directory, mode: mode, isMapped: isMapped)
    checkStore(of: name, directory, opened)
    if mode != .plain, DatabaseUnit.mayBeDatabase(size: status.size),
      !clock.hasSettled(status.modified), DatabaseUnit(name).hasCompanions(in: opened)
    {
      throw DatabaseFound()
    }
    if !wasUnchanged { run.record { $0.recordChanging(path, isMapped: isMapped) } }
    if content.size != scanned.size {
      run.record { $0.sizes[directory.id(index)] = content.size }
    }
    let metadata = try readMetadata(file.attributes, path) { () throws(SystemError) in
      try file.flags()
    }
    let entry = TreeEntry(
      name: name, node: .file(content.stored ?? .empty), status: status,
      attributes: metadata.attributes, flags: metadata.flags,
      linkGroup: run.links.name(of: status.identity))
    run.request.counters.didHandle(files: 1)
    return ReadEntry(
      entry: entry, status: status,
      isStable: wasUnchanged && metadata.isWhole && content.size == status.size
        && ChangeRules.isStable(status, readAt: time, in: clock, hadNoWriter: hadNoWriter),
      batchStart: content.batchStart)
  }

  /// Notes a store whose list of files, which was just read, may name some that the scan did not
  /// find.
  private borrowing func checkStore(
    of name: ByteString, _ directory: DirectoryContext, _ opened: borrowing Directory
  ) {
    guard ManifestStores.isList(name), let now = try? opened.status() else { return }
    let scanned = directory.scan.entries[Int(directory.id.index)].status
    guard now.modified != scanned.modified || now.changed != scanned.changed,
      ManifestStores.isStore(directory.id, run.trees)
    else { return }
    run.record { $0.changedStores.insert(directory.id) }
  }

  borrowing func read(
    _ file: borrowing Descriptor, at path: ByteString, of directory: DirectoryContext,
    status: FileStatus, mode: ReadMode
  ) throws -> ReadContent {
    if status.size == 0 { return .stored(try readUnsized(file, at: path)) }
    let mayHaveHoles = status.allocated < status.size
    if !mayHaveHoles, mode == .batched, SmallFileBatch.sizes ~= status.size {
      let range = try smallFiles.read(Int(status.size), of: file)
      run.request.counters.didHandle(bytes: UInt64(range.count))
      return .batched(range)
    }
    if !mayHaveHoles, status.size <= ContentWriter.wholeFile {
      return .stored(try readWhole(file, at: path, hints: FileHints(status), mode: mode))
    }
    return .stored(try readLarge(file, at: path, of: directory, status: status, mode: mode))
  }

  private borrowing func readWhole(
    _ file: borrowing Descriptor, at path: ByteString, hints: FileHints, mode: ReadMode
  ) throws -> Content {
    try buffer.store(hints.size ?? 0, of: file, mode: mode) { bytes in
      run.request.counters.didHandle(bytes: UInt64(bytes.count))
      return try writer.storeFile(logicalPath: path, bytes: bytes, hints: hints)
    }
  }

  // MARK: - Attributes and flags

  /// Reads the extended attributes and the flags that chattr(1) sets; records a problem if they
  /// cannot be read.
  borrowing func readMetadata(
    _ source: ExtendedAttributes, _ path: ByteString,
    flags readFlags: () throws(SystemError) -> UInt32?
  ) throws -> StoredMetadata {
    var metadata = StoredMetadata()
    var attributes: [(name: ByteString, value: [UInt8])] = []
    do throws(SystemError) {
      attributes = try source.all().filter { $0.name != Attribute.hostLabel }
    } catch {
      metadata.isWhole = false
      run.record { $0.addUnreadablePart(path, error) }
    }
    metadata.attributes = try attributes.map {
      try writer.makeAttribute(name: $0.name, value: $0.value)
    }
    do throws(SystemError) {
      metadata.flags = try readFlags() ?? 0
    } catch {
      metadata.isWhole = false
      run.record { $0.addUnreadablePart(path, error) }
    }
    return metadata
  }

  /// Returns the entry of a file that a refresh copied, and for a database those of its log and its
  /// journal. Returns nil if one of them must be read: then all are, so that they are consistent.
  mutating func readCopies(
    _ index: Int, in directory: DirectoryContext
  ) throws -> [(index: Int, copy: ReadEntry)]? {
    let known = directory.known
    guard known.copies[Int32(index)] != nil else { return nil }
    var copies: [(index: Int, copy: ReadEntry)] = []
    for member in [Int32(index)] + (known.databases[Int32(index)]?.companions ?? []) {
      guard let copied = known.copies[member],
        let copy = try readCopy(Int(member), copied, in: directory)
      else { return nil }
      copies.append((Int(member), copy))
    }
    return copies
  }

  /// Returns the entry of a file that a refresh copied: the stored content of the original with the
  /// copy's own metadata. Returns nil if the file must be read: it was replaced since the scan, or
  /// the copy was begun before the original's last change.
  private mutating func readCopy(
    _ index: Int, _ copied: RevisionCopy.File, in directory: DirectoryContext
  ) throws -> ReadEntry? {
    let path = directory.path.appending(directory.scan.name(index))
    do {
      return try inDirectory(directory) { worker, opened in
        try worker.makeCopy(index, at: path, from: copied, of: directory, in: opened)
      }
    } catch is SystemError {
      // Reading the file reports the error.
      return nil
    }
  }

  private borrowing func makeCopy(
    _ index: Int, at path: ByteString, from copied: RevisionCopy.File,
    of directory: DirectoryContext,
    in opened: borrowing Directory
  ) throws -> ReadEntry? {
    let name = directory.scan.name(index)
    let scanned = directory.scan.entries[index].status
    let status = try opened.status(name)
    // A new file inherits the flags of its directory; a copy does not get those of the original.
    guard status.isSameContent(as: scanned), status.identity == scanned.identity,
      ChangeRules.wasBegun(status, after: copied.original), copied.stored.flags == 0,
      try opened.flags() ?? 0 == 0
    else { return nil }
    let metadata = try readMetadata(opened.attributes(of: name), path) { nil }
    let entry = TreeEntry(
      name: name, node: copied.stored.node, status: status, attributes: metadata.attributes)
    return ReadEntry(
      entry: entry, status: status,
      isStable: metadata.isWhole
        && ChangeRules.isStable(status, readAt: run.now, in: run.clock(of: directory.tree.number)))
  }
}

extension FileHints {
  /// Creates hints from a file's status.
  init(_ status: FileStatus, isDatabase: Bool = false) {
    self.init(
      size: status.size, isDatabase: isDatabase, permissions: status.permissions,
      modified: status.modified)
  }
}

extension TreeEntry {
  /// The size of a file's content in bytes; nil for other entries.
  fileprivate var storedSize: UInt64? {
    if case .file(let content) = node { content.size } else { nil }
  }
}

extension FileStatus {
  /// Whether an entry's record (docs/state-file.md, "Entry") has the same status.
  func isRecorded(as other: FileStatus) -> Bool {
    kind == other.kind && identity.inode == other.identity.inode && isSameContent(as: other)
  }

  /// Whether the size and the times show no change of the content.
  func isSameContent(as other: FileStatus) -> Bool {
    size == other.size && modified == other.modified && changed == other.changed
  }
}
