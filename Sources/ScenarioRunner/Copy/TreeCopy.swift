internal import SystemIO

/// The copy of a directory's tree into another directory, entry by entry, without following links.
///
/// A copy shares its blocks with the source if the volume supports this, and has the content,
/// holes, times, modes, attributes and hard links of the source. It belongs to the user who runs
/// the program or, if that is root, to the owner of the source. The source is only read, and its
/// access times are unchanged if the user may prevent updates. Sockets, devices and mounted file
/// systems are not copied.
struct TreeCopy: ~Copyable {
  /// The maximum number of entries of a copy.
  static let entryLimit = 1_000_000

  private typealias Attribute = (name: ByteString, value: [UInt8])

  private var source: DirectoryCursor
  private var target: DirectoryCursor
  private let isStopping: () -> Bool
  private let isExcluded: (ByteString) -> Bool
  /// The first copy of each hard-linked file, by the identity of the source.
  private var links: [FileIdentity: ByteString] = [:]
  /// The copied directories. Their metadata is set once their content is complete.
  private var directories: [(path: ByteString, status: FileStatus, attributes: [Attribute])] = []
  private var count = 0

  /// Copies the content of a directory, and its metadata, to an empty directory.
  ///
  /// - Parameters:
  ///   - isExcluded: whether the entry at a path below the source, and everything below it, is not
  ///     copied.
  ///   - isStopping: whether to end early. Called for each entry.
  /// - Throws: `SystemError` if an entry cannot be read or written; `OperationError`:
  ///   `interrupted`, or `failed` for more than `entryLimit` entries.
  static func run(
    _ source: consuming Directory, to target: consuming Directory,
    excluding isExcluded: @escaping (ByteString) -> Bool = { _ in false },
    isStopping: @escaping () -> Bool = { false }
  ) throws {
    var copy = TreeCopy(
      source: DirectoryCursor(root: source), target: DirectoryCursor(root: target),
      isStopping: isStopping, isExcluded: isExcluded)
    try copy.run()
  }

  private init(
    source: consuming DirectoryCursor, target: consuming DirectoryCursor,
    isStopping: @escaping () -> Bool, isExcluded: @escaping (ByteString) -> Bool
  ) {
    self.source = source
    self.target = target
    self.isStopping = isStopping
    self.isExcluded = isExcluded
  }

  private mutating func run() throws {
    var pending: [ByteString] = [""]
    while let path = pending.popLast() {
      let (status, attributes, names) = try inSource(path) { directory throws(SystemError) in
        (try directory.status(), try directory.attributes.all(), try directory.names())
      }
      directories.append((path, status, attributes))
      for name in names {
        let inner = path.appending(name)
        if isExcluded(inner) { continue }
        try requireGoing()
        if try copy(name, in: path) { pending.append(inner) }
      }
    }
    for (path, status, attributes) in directories.reversed() {
      try inTarget(path) { directory throws(SystemError) in
        try Self.set(status, attributes, on: directory)
      }
    }
  }

  private mutating func requireGoing() throws(OperationError) {
    if isStopping() { throw OperationError.scenarioInterrupted }
    count += 1
    if count > Self.entryLimit {
      throw OperationError(
        .failed, code: .limitExceeded, "copy the device", subject: source.root.path,
        reason: "it has more than \(Self.entryLimit) entries",
        hint: "use a copy of it with fewer apps")
    }
  }

  /// Copies an entry. Returns whether it is a directory whose content is to be copied.
  private mutating func copy(_ name: ByteString, in path: ByteString) throws -> Bool {
    let status = try inSource(path) { directory throws(SystemError) in try directory.status(name) }
    switch status.kind {
    case .directory:
      try inTarget(path) { directory throws(SystemError) in
        try directory.createDirectory(name, permissions: 0o700)
      }
      return !status.isMountPoint
    case .symlink:
      let link = try inSource(path) { directory throws(SystemError) in
        try directory.target(of: name)
      }
      try inTarget(path) { directory throws(SystemError) in
        try directory.createLink(name, to: link)
        if Host.userID == 0 {
          try directory.setOwner(user: status.user, group: status.group, of: name)
        }
        try directory.setModified(status.modified, of: name)
      }
    case .fifo:
      try inTarget(path) { directory throws(SystemError) in
        try directory.createSpecial(name, kind: .fifo, permissions: status.permissions)
        try directory.setModified(status.modified, of: name)
      }
    case .file: try copyFile(name, in: path, status)
    case .socket, .characterDevice, .blockDevice: break
    }
    return false
  }

  private mutating func copyFile(
    _ name: ByteString, in path: ByteString, _ status: FileStatus
  ) throws {
    let inner = path.appending(name)
    if status.links > 1, let first = links[status.identity] {
      let above = try inTarget(first.parent) { directory throws(SystemError) in
        try directory.duplicate()
      }
      return try inTarget(path) { directory throws(SystemError) in
        try directory.createHardLink(name, to: first.lastComponent ?? "", in: above)
      }
    }
    let file = try inSource(path) { directory throws(SystemError) in
      try directory.fileUntouched(name)
    }
    let copy = try inTarget(path) { directory throws(SystemError) in
      try directory.create(name, permissions: 0o600)
    }
    if status.size > 0, try !copy.clone(of: file) { try copyBytes(of: file, status, to: copy) }
    try Self.set(status, file.attributes.all(), on: copy)
    try copy.close()
    if status.links > 1 { links[status.identity] = inner }
  }

  /// Copies the bytes, and keeps holes.
  private func copyBytes(
    of file: borrowing Descriptor, _ status: FileStatus, to copy: borrowing Descriptor
  ) throws {
    var at: UInt64 = 0
    let size = try file.readPieces(
      size: status.size, isSparse: status.allocated < status.size,
      data: { piece in
        if isStopping() { throw OperationError.scenarioInterrupted }
        try copy.write(piece, at: at)
        at += UInt64(piece.count)
      }, hole: { at += $0 })
    try copy.truncate(to: size)
  }

  /// Sets the metadata in an order in which no step undoes another: owner, attributes, mode, time.
  private static func set<Target: MetadataTarget & ~Copyable>(
    _ status: FileStatus, _ attributes: [Attribute], on target: borrowing Target
  ) throws(SystemError) {
    if Host.userID == 0 { try target.setOwner(user: status.user, group: status.group) }
    // Labels of security policies and capabilities belong to the host.
    for (name, value) in attributes where name.bytes.starts(with: "user.".utf8) {
      try target.attributes.set(name, to: value)
    }
    // The owner can always read a copy, because it is examined and removed.
    let access: UInt16 = status.kind == .directory ? 0o700 : 0o400
    try target.setPermissions(status.permissions & 0o1777 | access)
    try target.setModified(status.modified)
  }

  private mutating func inSource<Result: ~Copyable>(
    _ path: ByteString, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try source.withDirectory(at: path.components, body)
  }

  private mutating func inTarget<Result: ~Copyable>(
    _ path: ByteString, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try target.withDirectory(at: path.components, body)
  }
}
