package import ArchiveStore
internal import DeviceDiscovery
package import DeviceTransaction
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The preparation of a restore into a device: it finds the device and checks it against the
/// snapshot, recovers interrupted operations on it, and plans the restore.
package struct DeviceRestorePreparation {
  private let stored: StoredSnapshot
  /// The root of the device to restore into; nil for the device that was backed up.
  private let root: ByteString?
  private let reader: RepositoryReader
  private let protected: Set<FileIdentity>
  private let destination: Destination
  private let isPreview: Bool
  /// The snapshot's plain directory, if it no longer exists.
  private let missing: MissingRoot?

  /// Prepares the restore of a snapshot. Changes nothing.
  ///
  /// - Parameters:
  ///   - root: the root of the device to restore into; nil for the device that was backed up.
  ///   - protected: the directories that are never removed, such as the repository in use.
  ///   - destination: the destination of the snapshot that is made first.
  ///   - isPreview: whether nothing is to be changed.
  /// - Throws: `OperationError` if the snapshot's plain directory no longer exists and cannot be
  ///   created.
  package init(
    of stored: StoredSnapshot, to root: ByteString?, from reader: RepositoryReader,
    protecting protected: Set<FileIdentity>, savingTo destination: Destination, isPreview: Bool
  ) throws(OperationError) {
    self.stored = stored
    self.root = root
    self.reader = reader
    self.protected = protected
    self.destination = destination
    self.isPreview = isPreview
    missing = root == nil ? try MissingRoot.find(of: stored, protecting: protected) : nil
  }

  /// Restores with `body`. The snapshot's plain directory is created before, unless it exists, and
  /// removed again if `body` throws and has restored nothing into it.
  package func withRoot<Result>(_ body: () throws -> Result) throws -> Result {
    guard let missing, !isPreview else { return try body() }
    try missing.make()
    do {
      return try body()
    } catch {
      missing.removeIfEmpty()
      throw error
    }
  }

  /// Recovers interrupted operations on the device, and plans the restore.
  ///
  /// - Parameters:
  ///   - isForced: whether apps may run during the restore.
  ///   - compile: compiles the policy for the device.
  ///   - adapt: selects what is restored and how.
  ///   - notify: receives the report of the recovery.
  /// - Returns: the plan, and the report of the recovery, which may refuse it.
  package func plan(
    isForced: Bool, compile: (Device) throws -> CompiledPolicy,
    notify: (RecoveryReport, Device) -> Void, adapt: (inout DeviceRestoreRequest) throws -> Void
  ) throws -> (plan: DeviceRestorePlan, recovery: RecoveryReport) {
    let found = try device()
    let policy = try compile(found)
    let (device, recovery) = try Recovery.beforeChange(
      of: found, policy: policy, isForced: isForced, isPreview: isPreview, again: device,
      notify: notify
    )
    try makeBaseDirectories(of: device)
    var request = DeviceRestoreRequest(
      device, isInPlace: root == nil, policy: policy, savingTo: destination)
    try adapt(&request)
    request.isForced = isForced
    // A directory that was just created has nothing to save.
    request.savesFirst = request.savesFirst && missing == nil
    request.protected = protected
    return (try DeviceRestorePlan.make(stored, request, from: reader), recovery)
  }

  /// Sets the stored metadata of the plain directory that was created. Returns what could not be
  /// set.
  package func complete() -> [PathRemark] { missing?.complete(from: reader) ?? [] }

  // MARK: - The device

  /// Finds the device and checks that the snapshot can be restored into it.
  private func device() throws -> Device {
    let record = stored.snapshot.device
    if isPreview, let missing, !missing.isLeft { return missing.device }
    guard let layout = Layout(rawValue: record.layout) else {
      throw OperationError(
        .failed, code: .unknownLayout, "restore into a device",
        reason: "the snapshot's layout '\(ByteString(record.layout))' is unknown",
        hint: "'--to DIR' restores it into a plain directory")
    }
    if let root {
      if layout == .folder {
        throw OperationError(
          .failed, code: .notADeviceSnapshot, "restore into a device",
          reason: "the snapshot is of a plain directory",
          hint: "'--to DIR' restores it into a directory")
      }
      try makeRoot(root, layout)
      return try Device.find(root: root, layout: layout)
    }
    try makeOwnRoot(layout)
    let device = try Device.find(root: record.root, layout: layout)
    guard
      device.identity.description == record.identity || record.identity.hasPrefix("name:")
    else {
      throw OperationError(
        .failed, code: .deviceMismatch,
        "'\(record.root)' is not the device of the snapshot: its identity is "
          + "\(device.identity), not \(ByteString(record.identity))",
        hint: "'--to-device \(ShellWord.argument(record.root) ?? "ROOT")' restores into it anyway")
    }
    return device
  }

  /// Creates the directory of Flatpak or snap if it has not been used yet. The directory alone
  /// makes a device.
  private func makeRoot(_ root: ByteString, _ layout: Layout) throws(OperationError) {
    guard Self.homeIfUnused(root, layout) != nil, !isPreview else { return }
    do throws(SystemError) {
      _ = try Directory.make(path: root)
    } catch { throw OperationError(error) }
  }

  /// Creates the directory of Flatpak or snap at the path that the snapshot states. The snapshot
  /// may be another user's, so the path must be that of the device's identity on this machine, the
  /// home directory must exist, and no link is followed.
  private func makeOwnRoot(_ layout: Layout) throws(OperationError) {
    let (root, identity) = (stored.snapshot.device.root, stored.snapshot.device.identity)
    let isNamed = identity.hasPrefix("name:")
    guard let home = Self.homeIfUnused(root, layout), !isPreview, root.isAbsolute,
      !root.components.contains(where: { $0 == "." || $0 == ".." }),
      isNamed || DeviceFinder().identity(layout, root).description == identity
    else { return }
    do throws(SystemError) {
      _ = try Directory.open(resolved: home)
      _ = try Directory.make(resolved: root)
    } catch {
      // The search for the device reports these.
      if !error.isMissing, !error.isLink { throw OperationError(error) }
    }
  }

  /// Creates the base directories of a home in which the snapshot has single files, with the mode
  /// of the XDG Base Directory Specification. Otherwise the plans of several containers would each
  /// create the same directory.
  private func makeBaseDirectories(of device: Device) throws(OperationError) {
    guard device.layout == .xdg, !isPreview else { return }
    var made: Set<ByteString> = []
    for record in stored.snapshot.device.containers {
      guard let logical = try? LogicalPath(record.path).location?.container, logical.kind == .file,
        let location = try? device.location(forNew: logical), made.insert(location.parent).inserted
      else { continue }
      do throws(SystemError) {
        _ = try Directory.makeInherited(resolved: location.parent)
      } catch { throw OperationError(error) }
    }
  }

  /// Returns the home directory above the Flatpak or snap directory at a path, or nil if the path
  /// is that of no such directory.
  private static func homeIfUnused(_ root: ByteString, _ layout: Layout) -> ByteString? {
    switch layout {
    case .flatpak where root.components.suffix(2) == [".var", "app"]: root.parent.parent
    case .snap where root.lastComponent == "snap": root.parent
    default: nil
    }
  }
}

/// The root of a plain directory's snapshot if it no longer exists and is to be created again
/// before its content is restored in place. An empty directory that only its owner, this user, can
/// enter counts as missing: a restore that was killed leaves one.
///
/// It is created without access for others, and gets its stored metadata (owner, attributes, mode,
/// time) after its content. Only the directory itself is created: its parent must exist, and no
/// symbolic link may be on the path. Otherwise root could write where the user who created a link
/// cannot.
struct MissingRoot {
  /// The device after the directory is created.
  let device: Device
  /// Whether the directory exists, empty.
  let isLeft: Bool
  /// The logical path of its only container.
  private let container: ByteString
  private let snapshot: Snapshot
  private var parent: ByteString { device.root.parent }
  private var name: ByteString { device.root.lastComponent ?? "" }

  /// Returns the missing root of a snapshot; nil if the snapshot is not of a plain directory, if
  /// another entry is at its path, or if the parent cannot be read.
  ///
  /// - Throws: `failed` if the parent does not exist either, or if a link is on the path to it.
  static func find(
    of stored: StoredSnapshot, protecting protected: Set<FileIdentity>
  ) throws(OperationError) -> MissingRoot? {
    let record = stored.snapshot.device
    let root = record.root
    guard record.layout == Layout.folder.rawValue, root.isAbsolute, root.lastComponent != nil,
      !root.components.contains(where: { $0 == "." || $0 == ".." }),
      let container = record.containers.first?.path
    else { return nil }
    var missing = MissingRoot(
      device: DeviceFinder(layout: .folder).missingDirectory(root), isLeft: false,
      container: container, snapshot: stored.snapshot)
    // A snapshot of another machine is refused elsewhere.
    guard missing.device.identity.description == record.identity else { return nil }
    do throws(SystemError) {
      let above = try Directory.open(resolved: root.parent)
      if let status = try above.statusIfPresent(missing.name) {
        guard try isLeft(status, missing.name, in: above) else { return nil }
        missing = MissingRoot(
          device: missing.device, isLeft: true, container: container, snapshot: stored.snapshot)
      }
    } catch {
      try missing.refuse(error)
      return nil
    }
    try RestoreTarget.refuse(root, in: protected)
    return missing
  }

  /// Whether an entry may be the directory that a killed restore created: it has the same mode and
  /// owner, and is empty.
  private static func isLeft(
    _ status: FileStatus, _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) -> Bool {
    guard status.kind == .directory, !status.isMountPoint, status.permissions == permissions,
      status.user == Host.userID
    else { return false }
    return try parent.directory(name).names().isEmpty
  }

  /// The mode of the directory until its content is restored.
  private static let permissions: UInt16 = 0o700

  private func refuse(_ error: SystemError) throws(OperationError) {
    guard error.isMissing || error.isLink else { return }
    if error.isLink, (try? Directory.open(path: device.root)) != nil { return }
    let why =
      error.isMissing
      ? "its parent directory does not exist"
      : "a symbolic link is on its path, and links are not followed"
    throw OperationError(
      .failed, code: .rootMissing, "recreate", subject: device.root,
      reason: why,
      hint: "create '\(parent)' first, or restore into another directory with '--to DIR'")
  }

  /// Creates the directory, empty and without access for other users, unless it exists.
  func make() throws(OperationError) {
    if isLeft { return }
    do throws(SystemError) {
      let above = try Directory.open(resolved: parent)
      try above.createDirectory(name, permissions: Self.permissions)
      try above.sync()
    } catch { throw OperationError(error) }
  }

  /// Sets the directory's stored metadata. Returns what could not be set.
  func complete(from reader: RepositoryReader) -> [PathRemark] {
    let findings = RestoreFindings(ProgressCounters())
    do {
      guard let entry = try reader.entry(at: container, in: snapshot.tree) else { return [] }
      var tree = PlannedTree()
      let number = tree.append(entry, named: entry.name, parent: nil, action: .create)
      let directory = try Directory.open(resolved: device.root)
      let metadata = EntryMetadata(
        number: number, entry: tree.entries[number],
        attributes: reader.attributes(
          of: tree.detail(number), entry: number, findings: findings),
        findings: findings)
      metadata.set(on: directory)
      return findings.reasons.map { PathRemark(path: container, remark: $0) }
    } catch {
      return [PathRemark(path: container, remark: PresentTarget.Conflict.reason(error))]
    }
  }

  /// Removes the directory that `make` created if it is empty.
  func removeIfEmpty() {
    if isLeft { return }
    try? Directory.open(resolved: parent).removeDirectory(name)
  }
}
