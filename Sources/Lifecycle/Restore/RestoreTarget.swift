internal import ArchiveStore
internal import SystemIO

/// The directory that a restore works in: the target itself where it is merged into, else the one that
/// the target is to appear in.
///
/// Nothing is ever made, changed or removed outside of it, and in a directory beside the target nothing
/// but the target.
struct RestoreTarget: Sendable {
  /// The directory's path.
  let directory: ByteString
  /// The target's name in it; nothing where the directory is the target.
  let name: ByteString?
  /// The depth of the entry that remarks call the target: they name what is below it.
  let shownDepth: UInt16
  /// The directory that the plan was made for; nil if there was none. What is at its path when the plan
  /// is carried out must be the same one.
  var identity: FileIdentity?

  /// Finds the place for a request, and whether it has to say what becomes of what is there.
  ///
  /// - Throws: `LifecycleError`, also where the target lies in a directory that is protected, or would
  ///   appear there.
  static func find(
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

  /// The directory that is there, through a link too; nothing where there is none.
  private static func presentDirectory(_ target: ByteString) throws -> Directory? {
    do throws(SystemError) {
      return try Directory.open(path: target)
    } catch {
      if error.isMissing { return nil }
      throw LifecycleError(
        .failed, "cannot restore to '\(target)': \(error.reason)", hint: error.hint)
    }
  }

  private static func beside(
    _ target: ByteString, isDirectory: Bool, overwrite: OverwriteMode?
  ) throws -> RestoreTarget {
    guard let name = target.lastComponent, name != ".", name != ".." else {
      throw LifecycleError(
        .usage, "cannot restore to '\(target)': it has no name",
        hint: "name a directory that does not exist yet, or an empty one")
    }
    let directory = Host.linkFree(above(target))
    if overwrite == nil, let parent = try? Directory.open(path: directory),
      try parent.statusIfPresent(name) != nil
    {
      throw notEmpty(target, "something is there already")
    }
    return RestoreTarget(directory: directory, name: name, shownDepth: isDirectory ? 1 : 0)
  }

  private static func canPlace(beside target: ByteString) -> Bool {
    guard target.lastComponent != nil else { return false }
    guard let parent = try? Directory.open(path: above(target)) else { return false }
    return parent.canBeChanged
  }

  /// The path of the directory that a path is in.
  static func above(_ path: ByteString) -> ByteString {
    let above = ByteString(
      path.components.dropLast().map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
    return path.isAbsolute ? ByteString("/").appending(above) : above.isEmpty ? "." : above
  }

  private static func notEmpty(_ target: ByteString, _ reason: String) -> LifecycleError {
    LifecycleError(
      .usage, "cannot restore to '\(target)': \(reason)",
      hint: """
        name a directory that does not exist yet, or say what becomes of what is there: \
        '--overwrite if-changed', 'if-newer', 'always' or 'never'
        """)
  }
}
