internal import ArchiveStore
internal import Codecs
internal import DatabaseCapture
internal import SystemIO

/// The roles of files that a walk has passed and that may be databases of later logs and journals.
///
/// A log or a journal has the role of its database, as a backup selects them together
/// (`ContainerScan.joinDatabases`): a database without its log lacks transactions or is damaged.
/// The walk visits the names of a directory in the order of their bytes, so a database comes before
/// its log, and between them are only names that begin with its own, and their contents.
struct DatabaseRoles {
  private struct File {
    let path: ByteString
    let content: Content
    let role: RestoreSelector.Role
    /// Whether it is the log or the journal of another file: then it has no log of its own.
    let isCompanion: Bool
  }

  /// The passed files whose paths the current one begins with, the shortest first.
  private var files: [File] = []

  /// Returns the role of a file, given its own role. `isDatabase` is called for the file beside one
  /// with a journal's name that has another role, and for the latter: as in a backup, a log
  /// identifies a database; a file with a journal's name does not.
  mutating func role(
    of entry: TreeEntry, at path: ByteString, own: RestoreSelector.Role,
    isDatabase: (_ file: Content, _ journal: Content) -> Bool
  ) -> RestoreSelector.Role {
    guard case .file(let content) = entry.node else { return own }
    while let last = files.last, !Self.begins(path, with: last.path) { files.removeLast() }
    var role = own
    let found = database(of: entry.name, at: path)
    if let (database, member) = found, !database.isCompanion, database.role != own,
      member == .log || isDatabase(database.content, content)
    {
      role = database.role
    }
    files.append(File(path: path, content: content, role: role, isCompanion: found != nil))
    return role
  }

  /// Returns the file that a log or a journal belongs to by its name; nil if there is none.
  private func database(
    of name: ByteString, at path: ByteString
  ) -> (file: File, member: DatabaseMember)? {
    guard name.withSpan({ DatabaseMember.mayBeSidecar($0) }),
      let (_, member) = DatabaseMember.owner(of: name), member != .sharedMemory
    else { return nil }
    let count = path.count - member.suffix.count
    return files.last { $0.path.count == count }.map { ($0, member) }
  }

  private static func begins(_ path: ByteString, with other: ByteString) -> Bool {
    path.count > other.count && path.bytes.starts(with: other.bytes)
  }
}

extension RepositoryReader {
  private struct EndOfInterest: Error {}

  /// Whether a stored file is a database: it begins like one, or the file with a journal's name
  /// beside it is a rollback journal, as for an encrypted database. A file that cannot be read
  /// counts as a database.
  func mayBeDatabase(_ content: Content, beside journal: Content) -> Bool {
    if begins(content, with: DatabaseHead.bytes) ?? true { return true }
    return head(of: journal, count: DatabaseUnit.journalHeadSize).map {
      DatabaseUnit.isJournal(head: $0, beside: content.size)
    } ?? true
  }

  /// Whether a stored file begins with some bytes; nil if it cannot be read.
  func begins(_ content: Content, with beginning: [UInt8]) -> Bool? {
    head(of: content, count: beginning.count).map { $0 == beginning }
  }

  /// Returns the first bytes of a stored file, at most `count`; nil if they cannot be read.
  private func head(of content: Content, count: Int) -> [UInt8]? {
    let count = min(count, Int(clamping: content.size))
    var head: [UInt8] = []
    do {
      try readContent(content) { offset, bytes in
        // A hole precedes these bytes.
        let hole = min(count, Int(clamping: offset)) - head.count
        head.append(contentsOf: repeatElement(0, count: max(0, hole)))
        for index in 0..<min(bytes.count, count - head.count) { head.append(bytes[index]) }
        if head.count == count { throw EndOfInterest() }
      }
    } catch {
      guard error is EndOfInterest else { return nil }
    }
    return head + repeatElement(0, count: count - head.count)
  }
}
