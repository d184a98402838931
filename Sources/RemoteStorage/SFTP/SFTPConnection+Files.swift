internal import SystemIO

/// Files and directories, with the answers checked.
extension SFTPConnection {
  /// Opens a file.
  func open(
    _ path: ByteString, _ flags: SFTPOpenFlags, permissions: UInt32? = nil
  ) throws(SFTPFailure) -> SFTPHandle {
    try Self.handle(try call(.open(path: path, flags: flags, permissions: permissions)))
  }

  /// Returns the status of a path, whose last component is not followed, or nil if it does not
  /// exist.
  func statusIfPresent(_ path: ByteString) throws(SFTPFailure) -> SFTPAttributes? {
    do {
      return try Self.attributes(try call(.status(path)))
    } catch {
      guard error.isMissing else { throw error }
      return nil
    }
  }

  /// Makes a call that returns nothing.
  func perform(_ request: SFTPRequest) throws(SFTPFailure) {
    try Self.requireSuccess(try call(request))
  }

  /// Checks that an answer is success.
  static func requireSuccess(_ reply: SFTPReply) throws(SFTPFailure) {
    guard case .status(let status) = reply else { throw unexpected(reply) }
    guard status.code == .success else { throw .refused(status) }
  }

  /// Returns the handle of an answer.
  static func handle(_ reply: SFTPReply) throws(SFTPFailure) -> SFTPHandle {
    if case .handle(let handle) = reply { return handle }
    throw failure(reply)
  }

  /// Returns the attributes of an answer.
  static func attributes(_ reply: SFTPReply) throws(SFTPFailure) -> SFTPAttributes {
    if case .attributes(let attributes) = reply { return attributes }
    throw failure(reply)
  }

  /// Returns the failure of an answer that is not the expected one.
  static func failure(_ reply: SFTPReply) -> SFTPFailure {
    if case .status(let status) = reply, status.code != .success { return .refused(status) }
    return unexpected(reply)
  }

  private static func unexpected(_ reply: SFTPReply) -> SFTPFailure {
    SFTPFailure(
      SFTPViolation(reason: "it sent a reply of the wrong type for the request"))
  }
}

// MARK: - Directories

extension SFTPConnection {
  /// The maximum number of entries of a directory.
  static let entryLimit = 1 << 22
  /// The maximum number of entries `.` and `..` of a directory, each of which a server lists once.
  private static let ownEntryLimit = 64
  /// The number of directories that are listed at once.
  static let listWindow = 64

  /// Calls `body` with the entries of directories, in any order. Links of the paths are followed.
  ///
  /// - Parameter failed: called with the number of a path that cannot be listed.
  func list(
    _ paths: [ByteString], _ body: (Int, [SFTPName]) throws(SFTPFailure) -> Void,
    failed: (Int, SFTPFailure) throws(SFTPFailure) -> Void
  ) throws(SFTPFailure) {
    var start = 0
    while start < paths.count {
      let end = min(start + Self.listWindow, paths.count)
      let replies = try callAll(paths[start..<end].map { .openDirectory($0) })
      var open: [(index: Int, handle: SFTPHandle)] = []
      for (offset, reply) in replies.enumerated() {
        do throws(SFTPFailure) {
          open.append((start + offset, try Self.handle(reply)))
        } catch { try failed(start + offset, error) }
      }
      try readAll(open, body, failed: failed)
      start = end
    }
  }

  /// Reads open directories to their ends. Several parts of each are requested at once: two first,
  /// which suffice for a small one and its end, and then more.
  private func readAll(
    _ directories: [(index: Int, handle: SFTPHandle)],
    _ body: (Int, [SFTPName]) throws(SFTPFailure) -> Void,
    failed: (Int, SFTPFailure) throws(SFTPFailure) -> Void
  ) throws(SFTPFailure) {
    defer { for directory in directories { post(.close(directory.handle)) } }
    var (rest, parts) = (directories, 2)
    var counts: [Int: (names: Int, own: Int)] = [:]
    while !rest.isEmpty {
      let requests = rest.flatMap { directory in
        [SFTPRequest](repeating: .readDirectory(directory.handle), count: parts)
      }
      let replies = try callAll(requests)
      var unfinished: [(index: Int, handle: SFTPHandle)] = []
      for (position, directory) in rest.enumerated() {
        let answers = replies[(position * parts)..<((position + 1) * parts)]
        do throws(SFTPFailure) {
          let (names, own, isAtEnd) = try Self.names(answers)
          let count = counts[directory.index] ?? (0, 0)
          counts[directory.index] = (count.names + names.count, count.own + own)
          guard count.names + names.count <= Self.entryLimit, count.own + own <= Self.ownEntryLimit
          else { throw SFTPFailure(SFTPViolation(reason: "it lists a directory without end")) }
          try body(directory.index, names)
          if !isAtEnd { unfinished.append(directory) }
        } catch {
          guard case .refused = error else { throw error }
          try failed(directory.index, error)
        }
      }
      (rest, parts) = (unfinished, max(2, Self.window / max(1, unfinished.count)))
    }
  }

  /// Returns the entries of a directory's parts, without `.` and `..`, the number of these, and
  /// whether the last entries are included.
  private static func names(
    _ replies: ArraySlice<SFTPReply>
  ) throws(SFTPFailure) -> (names: [SFTPName], own: Int, isAtEnd: Bool) {
    var (found, own, isAtEnd, isEmpty) = ([SFTPName](), 0, false, true)
    for reply in replies {
      switch reply {
      case .names(let names):
        isEmpty = isEmpty && names.isEmpty
        for name in names {
          if name.name == "." || name.name == ".." {
            own += 1
            continue
          }
          guard name.name.nameFault == nil else {
            throw SFTPFailure(
              SFTPViolation(reason: "it lists '\(name.name)', which is not a name of a file"))
          }
          found.append(name)
        }
      case .status(let status) where status.code == .endOfFile: isAtEnd = true
      default: throw failure(reply)
      }
    }
    // A directory that never ends counts as complete.
    return (found, own, isAtEnd || isEmpty)
  }
}
