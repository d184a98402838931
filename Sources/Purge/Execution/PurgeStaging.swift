internal import ArchiveStore
internal import DeviceTransaction
internal import SandboxModel
internal import SystemIO

/// The staging directory for directory units: `.sandboxctl/purge` in their container, on the same
/// volume.
///
/// A directory is moved there by one rename, after its origin was recorded (as the target of a
/// symbolic link, for which even a full volume usually has space). It gets a name that marks it for
/// deletion only after it was found to match the plan. After an interrupted purge, or one that
/// could not delete everything, the next purge deletes the marked directories and moves the others
/// back: an unchecked directory may be precious data that another program put in that place at that
/// moment.
struct PurgeStaging: ~Copyable {
  let directory: Directory

  private static let name: ByteString = "purge"
  private static let pendingDeletion: ByteString = "doomed-"
  private static let origin: ByteString = ".origin"

  /// Opens the staging directory of a container, creating it if necessary.
  init(in root: borrowing Directory) throws(SystemError) {
    let own = try root.makeInherited(OwnNames.directory)
    do throws(SystemError) {
      directory = try Self.make(in: own, onVolumeOf: root)
    } catch {
      // A full volume may have had space only for the first directory.
      try? root.removeDirectory(OwnNames.directory)
      throw error
    }
  }

  private static func make(
    in own: borrowing Directory, onVolumeOf root: borrowing Directory
  ) throws(SystemError) -> Directory {
    let made = try own.makeInherited(name)
    guard try made.status().identity.device == root.status().identity.device else {
      throw SystemError.replaced(made.path)
    }
    return made
  }

  /// Moves a child of a directory here and returns its new name. `path` is the child's path in the
  /// container. With `leavingTwin`, an empty directory with the same mode, owner and attributes
  /// replaces it in the same step. If that fails, nothing stays here.
  func moveIn(
    _ name: ByteString, at path: ByteString, from parent: borrowing Directory, leavingTwin: Bool
  ) throws(SystemError) -> ByteString {
    let moved = ByteString(Host.randomHex(bytes: 8))
    // A full volume may have no space for the link. A directory that an interrupted purge leaves
    // behind is then only reported.
    try? directory.createLink(moved.concatenating(Self.origin), to: path)
    do throws(SystemError) {
      if leavingTwin {
        try moveLeavingTwin(name, in: parent, as: moved)
      } else {
        try parent.renameWithoutReplacing(name, to: moved, in: directory)
      }
    } catch {
      discardTwin(moved)
      throw error
    }
    return moved
  }

  /// Exchanges a directory with its empty twin. A file system or a sandbox that has no exchange
  /// gets two moves, between which the name is missing; `rollBack` undoes the first one.
  private func moveLeavingTwin(
    _ name: ByteString, in parent: borrowing Directory, as moved: ByteString
  ) throws(SystemError) {
    try Self.makeTwin(of: name, in: parent, as: moved, in: directory)
    do throws(SystemError) {
      return try parent.exchange(name, with: moved, in: directory)
    } catch {
      guard error.isUnsupported else { throw error }
    }
    try directory.removeDirectory(moved)
    try parent.renameWithoutReplacing(name, to: moved, in: directory)
    do throws(SystemError) {
      try Self.makeTwin(of: moved, in: directory, as: name, in: parent)
    } catch {
      // The app has made the directory again meanwhile.
      if error.isExisting { return }
      try? parent.removeDirectory(name)
      try? directory.renameWithoutReplacing(moved, to: name, in: parent)
      throw error
    }
  }

  /// Removes the empty directory and the record of a move that failed.
  private func discardTwin(_ moved: ByteString) {
    try? directory.removeDirectory(moved)
    Self.discardOrigin(of: moved, in: directory)
  }

  /// Removes the record of a directory that is no longer here. If it still is, or cannot be
  /// examined, its record is kept, so that the next purge moves it back.
  private static func discardOrigin(of moved: ByteString, in staging: borrowing Directory) {
    let isGone = (try? staging.statusIfPresent(moved) == nil) ?? false
    if isGone { try? staging.remove(moved.concatenating(origin)) }
  }

  /// Makes an empty directory with the metadata of another one.
  private static func makeTwin(
    of name: ByteString, in parent: borrowing Directory, as twin: ByteString,
    in directory: borrowing Directory
  ) throws(SystemError) {
    let status = try parent.status(name)
    try directory.createDirectory(twin, permissions: 0o700)
    // Only privileged users can set system attributes or another owner.
    let (old, new) = (parent.attributes(of: name), directory.attributes(of: twin))
    for key in try old.names() {
      if let value = try old.value(of: key) { try? new.set(key, to: value) }
    }
    let made = try directory.directory(twin)
    try? made.setOwner(user: status.user, group: status.group)
    try made.setPermissions(status.permissions)
  }

  /// Moves a directory back to its original location.
  func restoreOriginal(
    _ moved: ByteString, _ name: ByteString, to parent: borrowing Directory, wasExchanged: Bool
  ) throws(SystemError) {
    if wasExchanged {
      try exchangeBack(moved, name, to: parent)
    } else {
      try directory.renameWithoutReplacing(moved, to: name, in: parent)
    }
    try? directory.remove(moved.concatenating(Self.origin))
  }

  private func exchangeBack(
    _ moved: ByteString, _ name: ByteString, to parent: borrowing Directory
  ) throws(SystemError) {
    do throws(SystemError) {
      try parent.exchange(name, with: moved, in: directory)
    } catch {
      guard error.isUnsupported else { throw error }
      try parent.removeDirectory(name)
      return try directory.renameWithoutReplacing(moved, to: name, in: parent)
    }
    try directory.removeDirectory(moved)
  }

  /// Marks a directory for deletion, after it was found to match the plan. Returns its new name.
  func markForDeletion(_ moved: ByteString) throws(SystemError) -> ByteString {
    let name = Self.pendingDeletion.concatenating(moved)
    try directory.renameWithoutReplacing(moved, to: name, in: directory)
    try? directory.remove(moved.concatenating(Self.origin))
    return name
  }

  /// Removes the staging directory if it is empty.
  consuming func close(in root: borrowing Directory) {
    guard let own = try? root.directory(OwnNames.directory) else { return }
    try? own.removeDirectory(Self.name)
    try? root.removeDirectory(OwnNames.directory)
  }

  /// Returns the size of the rest of a directory that was marked for deletion.
  func size(of name: ByteString) -> UInt64 { Self.size(of: name, in: directory) }

  /// Returns the remedy for a marked directory in which an entry cannot be deleted.
  static func remedy(_ error: SystemError) -> String {
    guard error.isRefused else { return "the next purge deletes it" }
    return "delete it as the owner of all its entries or as root ('lsattr -R' shows immutable ones)"
  }

  /// The result of cleaning up after interrupted purges of a container.
  struct Leftovers {
    /// The size of the deleted directories.
    var bytes: UInt64 = 0
    /// The directories that could be neither moved back nor deleted, with the reasons.
    var failed: [PathRemark] = []
  }

  /// Finishes the work of interrupted and failed purges.
  static func settleLeftovers(in root: borrowing Directory) -> Leftovers {
    var left = Leftovers()
    guard let own = try? root.directory(OwnNames.directory), let staging = try? own.directory(name),
      (try? staging.status().identity.device) == (try? root.status().identity.device)
    else { return left }
    for name in (try? staging.names()) ?? [] {
      if name.bytes.starts(with: pendingDeletion.bytes) {
        remove(name, in: staging, &left)
      } else if !isOrigin(name), (try? rollBack(name, from: staging, into: root)) == nil {
        left.failed.append(
          PathRemark(
            path: staging.path.appending(name),
            remark: "an interrupted purge moved it here, and it cannot be moved back"))
      }
    }
    for name in (try? staging.names()) ?? [] where isOrigin(name) {
      discardOrigin(of: ByteString(name.bytes.dropLast(origin.count)), in: staging)
    }
    try? own.removeDirectory(Self.name)
    try? root.removeDirectory(OwnNames.directory)
    return left
  }

  private static func isOrigin(_ name: ByteString) -> Bool {
    name.bytes.suffix(origin.count) == origin.bytes
  }

  /// Deletes a marked directory, or as much of it as possible.
  private static func remove(
    _ name: ByteString, in staging: borrowing Directory, _ left: inout Leftovers
  ) {
    let before = size(of: name, in: staging)
    do throws(SystemError) {
      _ = try staging.removeTree(name, watch: RemovalWatch(makesWritable: true))
      left.bytes += before
    } catch {
      if error.isMissing { return }
      let after = size(of: name, in: staging)
      left.bytes += before - min(before, after)
      left.failed.append(
        PathRemark(
          path: staging.path.appending(name),
          remark: "an earlier purge could not delete it: \(error.reason); \(remedy(error))"))
    }
  }

  private static func size(of name: ByteString, in staging: borrowing Directory) -> UInt64 {
    guard let status = try? staging.status(name) else { return 0 }
    var sum = LeftoverSum()
    sum.freed.add(status)
    if status.kind == .directory, let directory = try? staging.directory(name) {
      var walk = Walk(directory)
      walk.run(&sum, state: ())
    }
    return sum.freed.bytes
  }

  /// Moves an unchecked directory back. An empty directory in its original location is the
  /// replacement that was left there. An empty directory here, while the original location is
  /// occupied, is a replacement that was never moved there; it is removed.
  private static func rollBack(
    _ moved: ByteString, from staging: borrowing Directory, into root: borrowing Directory
  ) throws {
    let path = try staging.target(of: moved.concatenating(origin))
    // The app can write here too, so the recorded path must not lead out of the container.
    guard PathRules.fault(inPath: path) == nil, let name = path.lastComponent else {
      throw SystemError.replaced(moved)
    }
    var cursor = DirectoryCursor(root: try root.duplicate())
    try cursor.withDirectory(at: path.components.dropLast()) { parent throws(SystemError) in
      if try parent.statusIfPresent(name) != nil, (try? staging.removeDirectory(moved)) != nil {
        return
      }
      try? parent.removeDirectory(name)
      try staging.renameWithoutReplacing(moved, to: name, in: parent)
    }
    try staging.remove(moved.concatenating(origin))
  }

  /// The total size of the entries left in a directory.
  private struct LeftoverSum: WalkVisitor {
    var freed = FreedBytes()

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
      descent: inout WalkDescent<Void>
    ) {
      for number in 0..<batch.entries.count {
        let status = batch.entries[number].status
        if status.kind == .directory { descent.enter(number, with: ()) }
        freed.add(status)
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {}
  }
}
