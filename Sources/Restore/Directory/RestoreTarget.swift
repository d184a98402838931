package import ArchiveStore
package import SystemIO

/// The directory that a restore works in: the target itself if it is merged, or the parent of a new
/// target.
///
/// Nothing outside this directory is ever created, changed or removed, and in the parent of a new
/// target nothing except the target.
package struct RestoreTarget: Sendable {
  /// The directory's path.
  package let directory: ByteString
  /// The target's name in it; nil if the directory is the target.
  package let name: ByteString?
  /// The depth of the target's entry; remarks contain paths below it.
  package let shownDepth: UInt16
  /// The identity of the directory at the time of planning; nil if it did not exist. The directory
  /// must be the same when the plan is carried out.
  var identity: FileIdentity?

  /// Returns the target for a request.
  ///
  /// - Throws: `OperationError` if the target is not empty and there is no overwrite mode, or if it
  ///   is or would be created in a protected directory.
  package static func find(
    _ target: ByteString, source: SnapshotSource, overwrite: OverwriteMode?,
    protecting protected: Set<FileIdentity>
  ) throws -> RestoreTarget {
    try refuse(target, in: protected)
    let isDirectory = if case .folder = source { true } else { false }
    guard let present = try presentDirectory(target) else {
      return try beside(target, isDirectory: isDirectory, overwrite: overwrite)
    }
    let isInUse = try isWorkingDirectory(present)
    if isInUse, !isDirectory { throw notReplaced(target) }
    let isEmpty = try present.isEmpty()
    if !isEmpty, overwrite == nil { throw notEmpty(target, "the directory is not empty") }
    let real = try Host.realPath(target)
    let isPlaced = try isEmpty && !isInUse && !present.status().isMountPoint
    if isDirectory, !isPlaced || !canPlace(beside: real) {
      return RestoreTarget(directory: real, name: nil, shownDepth: 0)
    }
    return try beside(real, isDirectory: isDirectory, overwrite: overwrite ?? .always)
  }

  /// Opens the existing directory, following links; nil if there is none.
  private static func presentDirectory(_ target: ByteString) throws -> Directory? {
    do throws(SystemError) {
      return try Directory.open(path: target)
    } catch {
      if error.isMissing { return nil }
      throw OperationError(
        .failed, "cannot restore to '\(target)': \(error.reason)", hint: error.hint)
    }
  }

  private static func beside(
    _ target: ByteString, isDirectory: Bool, overwrite: OverwriteMode?
  ) throws -> RestoreTarget {
    guard let name = target.lastComponent, name != ".", name != ".." else {
      throw OperationError(
        .usage, "cannot restore to '\(target)': the path does not end in a name",
        hint: "choose a directory that does not exist or is empty")
    }
    let directory = Host.linkFree(above(target))
    if overwrite == nil, let parent = try? Directory.open(path: directory),
      try parent.statusIfPresent(name) != nil
    {
      throw notEmpty(target, "it already exists")
    }
    return RestoreTarget(directory: directory, name: name, shownDepth: isDirectory ? 1 : 0)
  }

  private static func canPlace(beside target: ByteString) -> Bool {
    guard target.lastComponent != nil else { return false }
    guard let parent = try? Directory.open(path: above(target)) else { return false }
    return parent.canBeChanged
  }

  /// Returns the path of the directory that contains a path.
  static func above(_ path: ByteString) -> ByteString {
    let above = ByteString(joining: path.components.dropLast())
    return path.isAbsolute ? ByteString("/").appending(above) : above.isEmpty ? "." : above
  }

  private static func notEmpty(_ target: ByteString, _ reason: String) -> OperationError {
    OperationError(
      .usage, "cannot restore to '\(target)': \(reason)",
      hint: """
        choose a path that does not exist, or choose which files to replace: \
        '--overwrite if-changed', 'if-newer', 'always' or 'never'
        """)
  }
}
