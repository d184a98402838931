internal import ArchiveStore
internal import DeviceScan
internal import DeviceTransaction
internal import SystemIO

/// The existing entries of a restore's target, read directory by directory.
///
/// A directory is given by its depth below the one that the restore works in: the walk of the
/// snapshot and this position enter and leave directories together.
struct PresentTarget: ~Copyable {
  /// An existing entry that prevents an action.
  struct Conflict: Error {
    let reason: String

    static let mount = Conflict(reason: "another volume is mounted there")
    static let repository = Conflict(reason: "the repository in use is there")
    static let noDirectory = Conflict(reason: "the existing entry is not a directory and is kept")
    static let directory = Conflict(
      reason: "a directory that is not empty is there; only '--delete' removes it")

    static func kept(_ kind: FileKind) -> Conflict {
      Conflict(
        reason: "the existing \(kind == .directory ? "directory" : "entry") is kept")
    }

    /// Returns the reason of an error without its action and subject.
    static func reason(_ error: any Error) -> String {
      switch error {
      case let error as SystemError: error.reason
      case let error as StoreError: error.reason
      case let error as Conflict: error.reason
      default: "\(error)"
      }
    }
  }

  /// The directories down to the current one; nil if the target does not exist.
  var cursor: DirectoryCursor?
  /// The directories that are never removed.
  let protected: Set<FileIdentity>
  /// Whether neither repositories nor the control directories of devices are removed.
  let sparesOwnData: Bool

  init(protected: Set<FileIdentity>, sparesOwnData: Bool) {
    self.protected = protected
    self.sparesOwnData = sparesOwnData
    cursor = nil
  }

  /// Whether the target exists.
  var exists: Bool { cursor != nil }

  /// Returns the names in the current directory.
  mutating func names() throws(SystemError) -> UnseenNames? {
    try cursor?.withDirectory { directory throws(SystemError) in
      try UnseenNames(of: directory)
    }
  }

  /// Returns the names in the directory at a depth that meet a condition; nil if it cannot be
  /// listed.
  mutating func names(
    at depth: UInt16, where isWanted: (Span<UInt8>) -> Bool
  ) -> Set<ByteString>? {
    guard (try? cursor?.ascend(to: Int(depth))) != nil else {
      return nil
    }
    return try? cursor?.withDirectory { directory in
      var names: Set<ByteString> = []
      try directory.forEachName { if isWanted($0) { names.insert(ByteString($0)) } }
      return names
    }
  }

  /// Returns the names in a child of the directory at a depth, which becomes the current one.
  mutating func names(below name: ByteString, at depth: UInt16) throws(SystemError) -> Set<
    ByteString
  > {
    try cursor?.ascend(to: Int(depth))
    try cursor?.descend(name)
    return try names()?.names ?? []
  }

  /// Returns the kind of an entry in the directory at a depth; nil if there is none.
  mutating func kind(of name: ByteString, at depth: UInt16) throws(SystemError) -> FileKind? {
    try cursor?.ascend(to: Int(depth))
    let found = try cursor?.withDirectory { directory throws(SystemError) in
      try directory.statusIfPresent(name)?.kind
    }
    return found ?? nil
  }

  // MARK: - Databases

  /// Whether an entry is an existing file.
  mutating func isFile(_ name: ByteString, at depth: UInt16) throws(SystemError) -> Bool {
    try kind(of: name, at: depth) == .file
  }

  /// Whether the existing file begins like a database, or has a journal that would be rolled back
  /// into it. A missing or unreadable file may be one.
  mutating func mayBeDatabase(_ name: ByteString, at depth: UInt16) -> Bool {
    guard (try? isFile(name, at: depth)) == true else { return true }
    return cursor?.withDirectory { $0.mayBeDatabase(name) } ?? true
  }

  /// Returns the modification time of an existing file; nil if there is none.
  mutating func modified(_ name: ByteString, at depth: UInt16) -> Timestamp? {
    file(name, at: depth)?.modified
  }

  /// Returns an existing file as it is now; nil if there is none.
  mutating func existing(_ name: ByteString, at depth: UInt16) -> PlannedTree.Existing? {
    file(name, at: depth).map { PlannedTree.Existing($0) }
  }

  private mutating func file(_ name: ByteString, at depth: UInt16) -> FileStatus? {
    guard (try? isFile(name, at: depth)) == true else { return nil }
    return try? cursor?.withDirectory { directory throws(SystemError) in
      try directory.status(name)
    }
  }

  // MARK: - Removals

  /// Whether the directory at a depth is a repository, of which nothing is removed.
  mutating func isSparedRepository(at depth: UInt16) -> Bool {
    guard sparesOwnData, (try? cursor?.ascend(to: Int(depth))) != nil else { return false }
    return cursor?.withDirectory { RepositoryDirectory.isOne($0) } ?? false
  }

  /// Returns the contents of a directory in the current one, to replace it.
  ///
  /// - Throws: `Conflict` if it must be kept: if it is not empty, unless `deletes` is set.
  mutating func totals(
    ofReplaced name: ByteString, deletes: Bool
  ) throws -> RestoreTotals {
    var contents = PresentEntries(protected: protected, sparesOwnData: sparesOwnData)
    try cursor?.withDirectory { directory in try contents.read(directory.directory(name)) }
    if let reason = contents.protection { throw Conflict(reason: reason) }
    if contents.totals.entries > 0, !deletes { throw Conflict.directory }
    return contents.totals
  }

  /// Returns the totals of an entry of the directory at a depth, and of everything in it.
  ///
  /// - Throws: `Conflict` if something in it must be kept.
  mutating func totals(of name: ByteString, at depth: UInt16) throws -> RestoreTotals {
    try cursor?.ascend(to: Int(depth))
    var contents = PresentEntries(protected: protected, sparesOwnData: sparesOwnData)
    try cursor?.withDirectory { directory in
      guard let status = try directory.statusIfPresent(name) else { return }
      if name.withSpan({ contents.count(status, named: $0) }), status.kind == .directory {
        try contents.read(directory.directory(name))
      }
    }
    if let reason = contents.protection { throw Conflict(reason: reason) }
    return contents.totals
  }
}
