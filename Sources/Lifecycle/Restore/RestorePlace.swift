internal import ArchiveStore
internal import SystemIO

/// The folder that a restore works in: the target itself where it is merged into, else the one that
/// the target is to appear in.
///
/// Nothing is ever made, changed or removed outside of it, and in a folder beside the target nothing
/// but the target.
struct RestorePlace: Sendable {
  /// The folder's path.
  let folder: ByteString
  /// The target's name in it; nothing where the folder is the target.
  let name: ByteString?
  /// The depth of the entry that remarks call the target: they name what is below it.
  let shownDepth: UInt16
  /// The folder that the plan was made for; nil if there was none. What is at its path when the plan
  /// is carried out must be the same one.
  var identity: FileIdentity?

  /// Finds the place for a request, and whether it has to say what becomes of what is there.
  ///
  /// - Throws: `LifecycleError`, also where the target lies in a folder that is protected, or would
  ///   appear there.
  static func find(
    _ target: ByteString, source: SnapshotSource, overwrite: OverwriteMode?,
    protecting protected: Set<FileIdentity>
  ) throws -> RestorePlace {
    try refuse(target, in: protected)
    let isFolder = if case .folder = source { true } else { false }
    guard let present = try presentFolder(target) else {
      return try beside(target, isFolder: isFolder, overwrite: overwrite)
    }
    let isInUse = try isWorkingFolder(present)
    if isInUse, !isFolder { throw notReplaced(target) }
    let isEmpty = try present.isEmpty()
    if !isEmpty, overwrite == nil { throw notEmpty(target, "the folder is not empty") }
    let real = try Host.realPath(target)
    let isPlaced = try isEmpty && !isInUse && !present.status().isMountPoint
    if isFolder, !isPlaced || !canPlace(beside: real) {
      return RestorePlace(folder: real, name: nil, shownDepth: 0)
    }
    return try beside(real, isFolder: isFolder, overwrite: overwrite ?? .always)
  }

  /// The folder that is there, through a link too; nothing where there is none.
  private static func presentFolder(_ target: ByteString) throws -> Folder? {
    do throws(SystemError) {
      return try Folder.open(path: target)
    } catch {
      if error.isMissing { return nil }
      throw LifecycleError(
        .failed, "cannot restore to '\(target)': \(error.reason)", hint: error.hint)
    }
  }

  private static func beside(
    _ target: ByteString, isFolder: Bool, overwrite: OverwriteMode?
  ) throws -> RestorePlace {
    guard let name = target.lastComponent, name != ".", name != ".." else {
      throw LifecycleError(
        .usage, "cannot restore to '\(target)': it has no name",
        hint: "name a folder that does not exist yet, or an empty one")
    }
    let folder = Host.linkFree(above(target))
    if overwrite == nil, let parent = try? Folder.open(path: folder),
      try parent.statusIfPresent(name) != nil
    {
      throw notEmpty(target, "something is there already")
    }
    return RestorePlace(folder: folder, name: name, shownDepth: isFolder ? 1 : 0)
  }

  private static func canPlace(beside target: ByteString) -> Bool {
    guard target.lastComponent != nil else { return false }
    guard let parent = try? Folder.open(path: above(target)) else { return false }
    return parent.canBeChanged
  }

  /// The path of the folder that a path is in.
  static func above(_ path: ByteString) -> ByteString {
    let above = ByteString(
      path.components.dropLast().map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
    return path.isAbsolute ? ByteString("/").appending(above) : above.isEmpty ? "." : above
  }

  private static func notEmpty(_ target: ByteString, _ reason: String) -> LifecycleError {
    LifecycleError(
      .usage, "cannot restore to '\(target)': \(reason)",
      hint: """
        name a folder that does not exist yet, or say what becomes of what is there: \
        '--overwrite if-changed', 'if-newer', 'always' or 'never'
        """)
  }
}
