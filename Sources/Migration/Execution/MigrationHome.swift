internal import SystemIO

/// A home directory of a migration. Paths are relative to it, and below it no link is followed
/// except a snap's `current`.
final class MigrationHome {
  /// The link of a snap to its current revision, and that revision's directory.
  private let revision: (link: ByteString, directory: ByteString)?
  /// The link, if it names no such directory: then the home has no current revision of the snap.
  private let brokenLink: ByteString?
  private var cursor: DirectoryCursor
  private let owner: UInt32

  /// Opens the home directory of a side, whose path has no links.
  init(_ end: MigrationEnd) throws(SystemError) {
    let home = try Directory.open(resolved: end.home)
    let isSnap = end.packaging == .snap
    revision = isSnap ? Self.revision(of: end.container, in: home) : nil
    brokenLink = isSnap && revision == nil ? end.container.appending("current") : nil
    owner = try home.status().user
    cursor = DirectoryCursor(root: home)
  }

  /// Returns the path with the directory of a snap's current revision instead of the link to it.
  func real(_ path: ByteString) -> ByteString {
    guard let revision, path.isWithin(revision.link), path != revision.link else { return path }
    return revision.directory.appending(path.relative(to: revision.link))
  }

  /// Returns the path of a directory itself; that of the current revision for the link to it.
  func realDirectory(_ path: ByteString) -> ByteString {
    guard let revision, path == revision.link else { return real(path) }
    return revision.directory
  }

  /// Calls `body` with the directory at a path, as `realDirectory(_:)` returns it.
  func withDirectory<Result: ~Copyable>(
    _ path: ByteString, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try cursor.move(to: path.components)
    return try cursor.withDirectory(body)
  }

  /// Whether a file belongs to another user than the data around it, and others may not read it.
  /// The user of a home directory can give a file of root a second name there, as far as the kernel
  /// permits it.
  func isPrivateToAnother(
    _ file: FileStatus, at path: ByteString
  ) throws(SystemError) -> Bool {
    if file.permissions & 0o004 != 0 { return false }
    var user = owner
    if user == 0 {
      // The data of a snapshot is in a temporary directory of root.
      try withDirectory(real(path).parent) { directory throws(SystemError) in
        user = try directory.status().user
      }
    }
    return user != 0 && user != file.user
  }

  /// The remark on a file that is not copied for that reason.
  static let privateFile =
    "it belongs to another user, and others may not read it: to migrate it, change its owner in the "
    + "source, and migrate again"

  /// Returns the entry at a path, or nil if there is none.
  func entry(at path: ByteString) throws(SystemError) -> MigrationEntry? {
    if path == brokenLink { return nil }
    let name = path.lastComponent ?? ""
    do throws(SystemError) {
      return try withDirectory(real(path).parent) { directory throws(SystemError) in
        guard let status = try directory.statusIfPresent(name) else { return nil }
        return MigrationEntry(path, name: name, status, in: directory)
      }
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Returns the current revision of a snap, the directory next to the link `current` that it
  /// names, or nil if there is none.
  private static func revision(
    of snap: ByteString, in home: borrowing Directory
  ) -> (link: ByteString, directory: ByteString)? {
    guard let directory = try? MigrationSurvey.open(snap, in: home),
      let name = (try? directory.target(of: "current"))?.lastComponent, name.nameFault == nil,
      let status = try? directory.statusIfPresent(name), status.kind == .directory
    else { return nil }
    return (snap.appending("current"), snap.appending(name))
  }
}
