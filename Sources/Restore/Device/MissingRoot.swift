internal import ArchiveStore
internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

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
    } catch let error as StoreError {
      return [PathRemark(path: container, remark: error.reason)]
    } catch let error as SystemError {
      return [PathRemark(path: container, remark: error.reason)]
    } catch { return [] }
  }

  /// Removes the directory that `make` created if it is empty.
  func removeIfEmpty() {
    if isLeft { return }
    try? Directory.open(resolved: parent).removeDirectory(name)
  }
}
