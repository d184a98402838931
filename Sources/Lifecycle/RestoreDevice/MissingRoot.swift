public import ArchiveStore
public import SandboxModel
public import SystemIO

/// The directory of a plain directory's snapshot that is gone and is to be made again, where it was,
/// before its content comes back in place.
///
/// It is made closed to others, and gets what the snapshot has of it (owner, attributes, mode,
/// time) when its content is there. Only the directory itself is made: the one above must be there,
/// without a symbolic link on the way, whoever made it; root would else write where the user who
/// made the link cannot.
public struct MissingRoot {
  /// The device as it will be.
  public let device: Device
  /// The logical path of its only container.
  private let container: ByteString
  private let snapshot: Snapshot
  private var parent: ByteString { device.root.parent }
  private var name: ByteString { device.root.lastComponent ?? "" }

  /// Returns nil where the snapshot is of no plain directory, or something is at the directory's path, or
  /// the directory above cannot be looked at.
  ///
  /// - Throws: `failed` where the directory above is gone, too, or a link is on the way to it.
  public static func find(
    of stored: StoredSnapshot, protecting protected: Set<FileIdentity>
  ) throws(LifecycleError) -> MissingRoot? {
    let record = stored.snapshot.device
    let root = record.root
    guard record.layout == Layout.folder.rawValue, root.isAbsolute, root.lastComponent != nil,
      !root.components.contains(where: { $0 == "." || $0 == ".." }),
      let container = record.containers.first?.path
    else { return nil }
    let missing = MissingRoot(
      device: DeviceFinder(layout: .folder).missingDirectory(root), container: container,
      snapshot: stored.snapshot)
    // Another machine's is refused as such.
    guard missing.device.identity.description == record.identity else { return nil }
    do throws(SystemError) {
      if try Directory.open(resolved: root.parent).statusIfPresent(missing.name) != nil {
        return nil
      }
    } catch {
      try missing.refuse(error)
      return nil
    }
    try RestoreTarget.refuse(root, in: protected)
    return missing
  }

  private func refuse(_ error: SystemError) throws(LifecycleError) {
    guard error.isMissing || error.isLink else { return }
    if error.isLink, (try? Directory.open(path: device.root)) != nil { return }
    let why =
      error.isMissing
      ? "the directory that it was in is not there, either"
      : "a symbolic link is on the way to it now, and none is followed"
    throw LifecycleError(
      .failed, "cannot make '\(device.root)' again: \(why)",
      hint: "make '\(parent)' first, or restore into another directory with '--to DIR'")
  }

  /// Makes the directory, empty and for nobody else to read.
  public func make() throws(LifecycleError) {
    do throws(SystemError) {
      let above = try Directory.open(resolved: parent)
      try above.createDirectory(name, permissions: 0o700)
      try above.sync()
    } catch { throw LifecycleError(error) }
  }

  /// Gives the directory what the snapshot has of it; returns what could not be set.
  public func complete(from reader: RepositoryReader) -> [PathRemark] {
    let findings = RestoreFindings(ProgressCounters())
    do {
      guard let entry = try reader.entry(at: container, in: snapshot.tree) else { return [] }
      var tree = PlannedTree()
      let number = tree.append(entry, named: entry.name, parent: nil, action: .create)
      let directory = try Directory.open(resolved: device.root)
      let metadata = EntryMetadata(
        number: number, entry: tree.entries[number],
        attributes: reader.attributes(tree.detail(number), number, findings), findings: findings)
      metadata.set(on: directory)
      return findings.reasons.map { PathRemark(path: container, remark: $0) }
    } catch let error as StoreError {
      return [PathRemark(path: container, remark: error.reason)]
    } catch let error as SystemError {
      return [PathRemark(path: container, remark: error.reason)]
    } catch { return [] }
  }

  /// Removes the directory if nothing came into it.
  public func removeIfEmpty() {
    try? Directory.open(resolved: parent).removeDirectory(name)
  }
}
