package import ArchiveStore
internal import DeviceTransaction
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
  /// A restore into a plain directory that was in progress there at the time of planning.
  var activeRestore: OtherRestore?

  /// Returns the target for a request.
  ///
  /// - Throws: `OperationError` if the target is not empty and there is no overwrite mode, or if it
  ///   is or would be created in a protected directory.
  package static func find(
    _ target: ByteString, source: SnapshotSource, overwrite: OverwriteMode?,
    protecting protected: Set<FileIdentity>
  ) throws -> RestoreTarget {
    try refuse(target, in: protected)
    let isDirectory = if case .directory = source { true } else { false }
    guard let present = try presentDirectory(target) else {
      return try beside(target, isDirectory: isDirectory, overwrite: overwrite)
    }
    let isInUse = try isWorkingDirectory(present)
    if isInUse, !isDirectory { throw notReplaced(target) }
    let isEmpty = try present.isEmpty()
    if !isEmpty, overwrite == nil { throw notEmpty(target, "the directory is not empty") }
    let real = try Host.realPath(target)
    let isPlaced = try isEmpty && !isInUse && !present.status().isMountPoint
    if isDirectory, !isPlaced || !canRestore(beside: real) {
      var target = RestoreTarget(directory: real, name: nil, shownDepth: 0)
      target.activeRestore = ActiveStaging.find(in: present).map { OtherRestore($0) }
      return target
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
        .failed, code: error.code, "restore to", subject: target,
        reason: error.reason,
        hint: error.hint)
    }
  }

  private static func beside(
    _ target: ByteString, isDirectory: Bool, overwrite: OverwriteMode?
  ) throws -> RestoreTarget {
    guard let name = target.lastComponent, name != ".", name != ".." else {
      throw OperationError(
        .usage, code: .invalidTarget,
        "restore to", subject: target,
        reason: "the path does not end in a name",
        hint: "choose a directory that does not exist or is empty")
    }
    let directory = Host.linkFree(target.dirname)
    if overwrite == nil, let parent = try? Directory.open(path: directory),
      try parent.statusIfPresent(name) != nil
    {
      throw notEmpty(target, "it already exists")
    }
    return RestoreTarget(directory: directory, name: name, shownDepth: isDirectory ? 1 : 0)
  }

  private static func canRestore(beside target: ByteString) -> Bool {
    guard target.lastComponent != nil else { return false }
    guard let parent = try? Directory.open(path: target.dirname) else { return false }
    return parent.canBeChanged
  }

  private static func notEmpty(_ target: ByteString, _ reason: String) -> OperationError {
    OperationError(
      .usage, code: .targetExists, "restore to", subject: target,
      reason: reason,
      hint: """
        choose a path that does not exist, or choose which files to replace: \
        '--overwrite if-changed', 'if-newer', 'always' or 'never'
        """)
  }

  // MARK: - Refusals

  /// Refuses a target that is, is in, or would be created in a protected directory.
  static func refuse(
    _ target: ByteString, in protected: Set<FileIdentity>
  ) throws(OperationError) {
    guard isWithin(nearestDirectory(target), in: protected) else { return }
    throw OperationError(
      .usage, code: .targetInRepository,
      "restore to", subject: target,
      reason: "it is in the repository to restore from",
      hint: "choose a directory outside the repository")
  }

  /// Whether a directory is or contains this process's working directory. If it were replaced, this
  /// process and the shell that started it would remain in a deleted directory.
  static func isWorkingDirectory(_ directory: borrowing Directory) throws(SystemError) -> Bool {
    isWithin(".", in: [try directory.status().identity])
  }

  /// Returns the error for a file that would replace the working directory.
  static func notReplaced(_ target: ByteString) -> OperationError {
    OperationError(
      .usage, code: .targetIsWorkingDirectory,
      "restore to", subject: target,
      reason: "the source is not a directory and would replace "
        + "the working directory",
      hint: "give the path of the file to create")
  }

  /// Whether a directory is one of several, or is at any depth in one. Comparing paths is not
  /// enough, because they may contain links.
  private static func isWithin(_ path: ByteString, in some: Set<FileIdentity>) -> Bool {
    guard !some.isEmpty, let directory = try? Directory.open(path: path) else { return false }
    var ancestor: ByteString = "."
    var below: FileIdentity?
    // The root directory is its own parent.
    while let here = try? directory.status(ancestor).identity, here != below {
      if some.contains(here) { return true }
      below = here
      ancestor = ancestor.appending("..")
    }
    return false
  }

  /// Returns the path itself if the directory exists, or that of its nearest existing ancestor.
  private static func nearestDirectory(_ path: ByteString) -> ByteString {
    let isThere = (try? Directory.open(path: path)) != nil
    let next = path.dirname
    // An inaccessible working directory is its own parent.
    return isThere || path.components.isEmpty || next == path ? path : nearestDirectory(next)
  }
}
