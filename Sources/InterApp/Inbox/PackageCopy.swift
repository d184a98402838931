internal import DeviceTransaction
internal import SystemIO

/// A copy of a document package that is not yet in place: a directory with a temporary name in the
/// target. It is removed unless `commit(as:)` is called; after a crash, the next change of the
/// inbox removes it.
///
/// The files of the copy are read-only; its directories are not, so that the app can delete it.
/// Each entry belongs to the owner of the target. Links are copied only if they cannot lead out of
/// the package.
final class PackageCopy {
  private let directory: Directory
  private let temporary: ByteString
  private var target: DirectoryCursor
  private var isDone = false
  /// The digest of the entries that are copied.
  let digest = PackageDigest()

  private static let directoryMode: UInt16 = 0o755
  private static let fileMode: UInt16 = 0o444

  /// Creates an empty copy in a directory.
  init(in directory: borrowing Directory) throws(SystemError) {
    let parent = try directory.duplicate()
    let name = Self.temporaryName()
    try parent.createInherited(name)
    target = DirectoryCursor(root: try parent.directory(name))
    self.directory = parent
    temporary = name
  }

  /// Returns a name for which `AtomicFile.isTemporary` holds.
  private static func temporaryName() -> ByteString {
    ByteString(".sandboxctl-package-\(Host.randomHex(bytes: 8)).tmp")
  }

  deinit {
    if !isDone { try? directory.removeTree(temporary) }
  }

  /// Copies a package, and makes the copy durable.
  ///
  /// - Returns: The reason why the package cannot be copied, or nil if it was copied.
  func add(_ source: borrowing Directory) throws(SystemError) -> String? {
    var refusal: String?
    let end = try PackageWalk.run(source) { path, status, directory throws(SystemError) in
      refusal = try PackageWalk.refusal(of: path, status, in: directory)
      if refusal == nil { try add(path, status.kind, in: directory) }
      return refusal == nil
    }
    if end != .complete { return refusal ?? PackageWalk.tooLarge }
    try target.withDirectory(at: []) { copy throws(SystemError) in
      try copy.setPermissions(Self.directoryMode)
    }
    try directory.syncVolume()
    return nil
  }

  private func add(
    _ path: ByteString, _ kind: FileKind, in source: borrowing Directory
  ) throws(SystemError) {
    let name = path.lastComponent ?? path
    try target.withDirectory(at: path.parent.components) { directory throws(SystemError) in
      switch kind {
      case .directory:
        try directory.createInherited(name, permissions: Self.directoryMode, exactly: true)
        return digest.addDirectory(path)
      case .symlink:
        let link = try source.target(of: name)
        try directory.createLink(name, to: link)
        digest.addLink(path, to: link)
      default: try addFile(path, name, in: source, to: directory)
      }
      try directory.inheritOwner(name)
    }
  }

  private func addFile(
    _ path: ByteString, _ name: ByteString, in source: borrowing Directory,
    to directory: borrowing Directory
  ) throws(SystemError) {
    let file = try source.fileUntouched(name)
    let copy = try directory.create(name, permissions: 0o600)
    let (size, hash) = try FileDigest.of(file) { piece throws(SystemError) in
      try copy.write(piece)
    }
    try copy.setPermissions(Self.fileMode)
    try copy.close()
    digest.addFile(path, size: size, hash: hash)
  }

  /// Renames the copy to its final name, which must not exist, and syncs the directory.
  func commit(as name: ByteString) throws(SystemError) {
    try directory.add(temporary, to: directory, as: name)
    isDone = true
    try directory.sync()
  }
}
