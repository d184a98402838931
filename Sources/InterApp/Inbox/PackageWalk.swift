internal import SystemIO

/// The walk over the entries of a document package, a directory that users see as one file, in an
/// order that depends on their names only. No link is followed.
enum PackageWalk {
  /// The maximum number of entries.
  static let entryLimit = 100_000
  /// The maximum number of names in a path in the package.
  static let depthLimit = 64

  /// The end of a walk.
  enum End {
    case complete
    /// The visitor stopped it.
    case stopped
    /// The package exceeds a limit.
    case tooLarge
  }

  /// Calls `visit` for each entry below a directory: with its path in the package, its status, and
  /// the open directory that contains it; a directory comes before its entries. The walk ends if
  /// `visit` returns false.
  ///
  /// - Throws: `SystemError` for the directory, and the errors of `visit`.
  static func run(
    _ root: borrowing Directory,
    _ visit: (ByteString, FileStatus, borrowing Directory) throws(SystemError) -> Bool
  ) throws(SystemError) -> End {
    var cursor = DirectoryCursor(root: try root.duplicate())
    var pending = paths("", of: try root.names())
    var count = pending.count
    while let path = pending.popLast() {
      let components = path.components
      guard count <= entryLimit, components.count <= depthLimit, let name = components.last else {
        return .tooLarge
      }
      var (below, isStopped): ([ByteString], Bool) = ([], false)
      try cursor.withDirectory(at: components.dropLast()) { directory throws(SystemError) in
        let status = try directory.status(name)
        isStopped = try !visit(path, status, directory)
        if !isStopped, status.kind == .directory, !status.isMountPoint {
          below = try directory.directory(name).names()
        }
      }
      if isStopped { return .stopped }
      count += below.count
      pending += paths(path, of: below)
    }
    return .complete
  }

  /// Returns the paths of sorted names in a directory, the first one last.
  private static func paths(_ parent: ByteString, of names: [ByteString]) -> [ByteString] {
    names.reversed().map { parent.appending($0) }
  }
}

extension PackageWalk {
  /// The size of a package, and whether it can be delivered.
  struct Measure {
    /// The number of entries.
    let entries: Int
    /// The sum of the sizes of its files in bytes.
    let bytes: UInt64
    /// The reason why the package is not delivered, or nil.
    let refusal: String?

    /// Measures a package.
    init(of root: borrowing Directory) throws(SystemError) {
      var (entries, bytes): (Int, UInt64) = (0, 0)
      var refusal: String?
      let end = try PackageWalk.run(root) { path, status, directory throws(SystemError) in
        entries += 1
        if status.kind == .file { bytes.addClamping(status.size) }
        refusal = try PackageWalk.refusal(of: path, status, in: directory)
        return refusal == nil
      }
      (self.entries, self.bytes) = (entries, bytes)
      self.refusal = refusal ?? (end == .tooLarge ? PackageWalk.tooLarge : nil)
    }
  }

  /// Returns the sum of the sizes of the files below a directory in bytes, and whether it is within
  /// the limits. Reads no file, because an app may have created a sparse one of any size.
  static func size(
    of root: borrowing Directory
  ) throws(SystemError) -> (bytes: UInt64, isBounded: Bool) {
    var bytes: UInt64 = 0
    let end = try run(root) { _, status, _ throws(SystemError) in
      if status.kind == .file { bytes.addClamping(status.size) }
      return true
    }
    return (bytes, end == .complete)
  }

  /// The reason for refusing a package that exceeds a limit.
  static let tooLarge =
    "it has more than \(entryLimit) entries, or a path of more than \(depthLimit) names"

  /// Returns the reason why an entry cannot be part of a delivered package, or nil: it is neither a
  /// file nor a directory, it is a mount, or it is a link that can lead out of the package.
  static func refusal(
    of path: ByteString, _ status: FileStatus, in directory: borrowing Directory
  ) throws(SystemError) -> String? {
    switch status.kind {
    case .file where status.isMountPoint, .directory where status.isMountPoint:
      return "'\(path)' in it is a mounted file system"
    case .file, .directory: return nil
    case .symlink:
      let target = try directory.target(of: path.lastComponent ?? path)
      if staysInside(target, depth: path.components.count - 1) { return nil }
      return "'\(path)' in it is a link to '\(target)', which can lead out of it"
    case .fifo, .socket, .characterDevice, .blockDevice:
      return "'\(path)' in it is neither a file nor a directory"
    }
  }

  /// Whether a link cannot lead out of a package: its target is relative, and all `..` are at its
  /// start, at most one for each directory above the link. A `..` after a name could follow another
  /// link.
  ///
  /// - Parameter depth: The number of directories of the package above the link.
  static func staysInside(_ target: ByteString, depth: Int) -> Bool {
    if target.isAbsolute || target.isEmpty { return false }
    let names = target.bytes.split(separator: ByteString.slash).map { ByteString($0) }
      .filter { $0 != "." }
    let up = names.prefix { $0 == ".." }.count
    return up <= depth && !names.dropFirst(up).contains("..")
  }
}
