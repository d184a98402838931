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

  /// Returns the role of a file, whose own role is given. `isDatabase` is called for the file
  /// beside a journal that has another role: as in a backup, a log identifies a database; a journal
  /// alone does not.
  mutating func role(
    of entry: TreeEntry, at path: ByteString, own: RestoreSelector.Role,
    isDatabase: (Content) -> Bool
  ) -> RestoreSelector.Role {
    guard case .file(let content) = entry.node else { return own }
    while let last = files.last, !Self.begins(path, with: last.path) { files.removeLast() }
    var role = own
    let found = database(of: entry.name, at: path)
    if let (database, member) = found, !database.isCompanion, database.role != own,
      member == .log || isDatabase(database.content)
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

  /// Whether a stored file begins like a database. One that cannot be read counts as one.
  func mayBeDatabase(_ content: Content) -> Bool {
    begins(content, with: DatabaseHead.bytes) ?? true
  }

  /// Whether a stored file begins with some bytes; nil if it cannot be read.
  func begins(_ content: Content, with beginning: [UInt8]) -> Bool? {
    var head: [UInt8] = []
    do {
      try readContent(content) { offset, bytes in
        // A hole precedes these bytes.
        if offset != UInt64(head.count) { throw EndOfInterest() }
        for index in 0..<min(bytes.count, beginning.count - head.count) {
          head.append(bytes[index])
        }
        if head.count == beginning.count { throw EndOfInterest() }
      }
    } catch {
      guard error is EndOfInterest else { return nil }
    }
    return head == beginning
  }
}
