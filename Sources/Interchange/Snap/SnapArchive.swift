internal import SandboxModel
package import SystemIO

/// An archive in a snapshot of a snap.
package enum SnapArchive: Hashable, Sendable {
  /// The data in `/var/snap/NAME`.
  case system
  /// The data in a user's `~/snap/NAME`.
  case user(ByteString)

  /// The name of the archive in the snapshot (snapd, overlord/snapshotstate/backend).
  package var member: ByteString {
    switch self {
    case .system: Self.systemMember
    case .user(let name): ByteString(Self.prefix + Array(name.bytes) + Self.suffix)
    }
  }

  /// Recognizes the name of a member, or returns nil for other members.
  package init?(member: ByteString) {
    if member == Self.systemMember {
      self = .system
      return
    }
    let bytes = member.bytes
    guard bytes.count > Self.prefix.count + Self.suffix.count, bytes.starts(with: Self.prefix),
      bytes.suffix(Self.suffix.count).elementsEqual(Self.suffix)
    else { return nil }
    let user = ByteString(bytes.dropFirst(Self.prefix.count).dropLast(Self.suffix.count))
    guard user.nameFault == nil, user.utf8 != nil else { return nil }
    self = .user(user)
  }

  private static let systemMember: ByteString = "archive.tgz"
  private static let prefix = Array("user/".utf8)
  private static let suffix = Array(".tgz".utf8)
}

/// The directories of a snap's archive as containers.
///
/// | archive | directory in it | container |
/// | --- | --- | --- |
/// | `archive.tgz` | `common` | `apps/NAME/system-data` |
/// | `archive.tgz` | the revision | `apps/NAME/system-revision` |
/// | `user/NAME.tgz` | `common` | `apps/NAME/data` |
/// | `user/NAME.tgz` | the revision | `apps/NAME/revision` |
enum SnapPath {
  static let common: ByteString = "common"
  /// The container with the metadata of each snap that was imported: `folders/snapd/NAME.json`.
  static let metadata: ByteString = "folders/snapd"

  /// Returns the logical path of a member of an archive, or nil if it is in neither directory.
  static func logicalPath(
    of path: [ByteString], in archive: SnapArchive, _ snap: SnapMetadata
  ) -> [ByteString]? {
    guard let top = path.first else { return nil }
    let name = LogicalName(snap.name)
    let container: LogicalContainer
    switch (archive, top == common) {
    case (.system, true): container = .systemData(name)
    case (.user, true): container = .data(name)
    case (.system, false): container = .systemRevision(name)
    case (.user, false): container = .revision(name)
    }
    guard top == common || top == ByteString(snap.revision) else { return nil }
    return container.prefix.components + path.dropFirst()
  }

  /// The location of a logical path in the archives of a snap.
  struct Location: Hashable {
    let snap: ByteString
    let isOfSystem: Bool
    /// Whether it is in the revision's directory instead of `common`.
    let isInRevision: Bool
    let inner: [ByteString]

    /// Returns the path in the archive of a snap with this revision.
    func member(revision: String) -> [ByteString] {
      [isInRevision ? ByteString(revision) : common] + inner
    }
  }

  /// Returns the location of a logical path, or nil if no archive of a snap contains its container.
  static func location(of path: [ByteString]) -> Location? {
    guard let location = try? LogicalPath(ByteString(joining: path)).location else { return nil }
    let (isOfSystem, isInRevision): (Bool, Bool)
    switch location.container {
    case .data: (isOfSystem, isInRevision) = (false, false)
    case .revision: (isOfSystem, isInRevision) = (false, true)
    case .systemData: (isOfSystem, isInRevision) = (true, false)
    case .systemRevision: (isOfSystem, isInRevision) = (true, true)
    default: return nil
    }
    let name = location.container.name
    guard name.instance == nil, SnapMetadata.isName(name.identifier) else { return nil }
    return Location(
      snap: name.identifier, isOfSystem: isOfSystem, isInRevision: isInRevision,
      inner: location.inner.components)
  }

  /// Whether a path is that of imported metadata, or above it.
  static func isMetadata(_ path: [ByteString]) -> Bool {
    ByteString(joining: path).isWithin(metadata) || metadata.isWithin(ByteString(joining: path))
  }
}
