package import DeviceScan
internal import SandboxModel
package import SystemIO

/// The effect of a migration between two devices on one container: the entries that the policy
/// stores, compared with those of the counterpart.
package struct ContainerPreview: Sendable {
  /// The container and its counterpart.
  package let pairing: ContainerPairing
  /// The files to copy.
  package private(set) var copied = EntryTotals()
  /// The files and links that the counterpart has already: files by type, size and time, links by
  /// their targets.
  package private(set) var present = 0
  /// The paths in the container at which the counterpart has another entry, which stays unchanged.
  package private(set) var conflicts: [ByteString] = []
  /// The files that the policy excludes from backups, and therefore from a migration.
  package private(set) var excluded = EntryTotals()
  /// The files for which the target has no place.
  package private(set) var withoutPlace = EntryTotals()

  /// Compares the containers of a scan with their counterparts. Reads only the counterparts'
  /// directories.
  ///
  /// - Parameter scan: The scan of the source, which has the containers of the pairs; a container
  ///   that is missing in it counts as empty.
  package static func make(_ pairs: [ContainerPairing], in scan: DeviceScan) -> [ContainerPreview] {
    pairs.map { pair in
      var preview = ContainerPreview(pair, among: pairs)
      if let found = scan.containers.first(where: {
        $0.container.logicalPrefix == pair.source.logicalPrefix
      }) {
        preview.add(found)
      }
      return preview
    }
  }

  /// The containers of the source with those of the target, to compare absolute links into them.
  private let containers: [(source: ByteString, target: ByteString)]

  private init(_ pairing: ContainerPairing, among pairs: [ContainerPairing]) {
    self.pairing = pairing
    containers = pairs.compactMap { pair in
      guard case .present(let path) = pair.counterpart else { return nil }
      return (pair.source.absolutePath, path)
    }
  }

  private mutating func add(_ scan: ContainerScan) {
    let source = EntryFinder(at: pairing.source.absolutePath)
    // A container that is created is empty.
    var target: EntryFinder?
    if case .present(let path) = pairing.counterpart { target = EntryFinder(at: path) }
    for index in 0..<scan.entries.count {
      let entry = scan.entries[index]
      if entry.status.kind == .directory { continue }
      if entry.selection == .excluded {
        excluded.add(entry.status)
      } else if pairing.counterpart == .noPlace {
        withoutPlace.add(entry.status)
      } else if Self.isMetadata(scan.name(index), at: entry.parent) {
        // The target's container has its own record.
        continue
      } else {
        let path = scan.path(index)
        add(entry.status, at: path, found: target?.entry(at: path), from: source)
      }
    }
  }

  private mutating func add(
    _ status: FileStatus, at path: ByteString, found: MigrationEntry?, from source: EntryFinder?
  ) {
    guard let found else { return copied.add(status) }
    let isSame: Bool
    switch status.kind {
    case _ where found.kind != status.kind: isSame = false
    case .file: isSame = found.size == status.size && found.modified == status.modified
    case .symlink: isSame = leadsToTheSame(source?.entry(at: path)?.target, found.target)
    default: isSame = true
    }
    if isSame { present += 1 } else { conflicts.append(path) }
  }

  /// Whether two links have the same target, or lead to the same path of a container and of its
  /// counterpart: a restore replaces such targets.
  private func leadsToTheSame(_ source: ByteString?, _ target: ByteString?) -> Bool {
    guard let source, let target, !source.isEmpty else { return false }
    if source == target { return true }
    return containers.contains { pair in
      let inner = Self.path(of: source, in: pair.source)
      return inner != nil && inner == Self.path(of: target, in: pair.target)
    }
  }

  /// Returns the components of an absolute link's target below a container, which the link names by
  /// its path or by its UUID (the device's own view, `/var/mobile/Containers/…`), or nil for other
  /// targets.
  private static func path(of link: ByteString, in container: ByteString) -> [ByteString]? {
    guard link.isAbsolute else { return nil }
    if link.isWithin(container) { return link.relative(to: container).components }
    // Containers of macOS end with `Data`, and have no UUID.
    guard let name = container.lastComponent, name.bytes.count == 36,
      let index = link.components.firstIndex(of: name)
    else { return nil }
    return Array(link.components[(index + 1)...])
  }

  /// Whether an entry is the record of the platform's container manager about the container.
  private static func isMetadata(_ name: ByteString, at parent: Int32) -> Bool {
    let names: [ByteString] = [
      ".com.apple.mobile_container_manager.metadata.plist",
      ".com.apple.containermanagerd.metadata.plist",
    ]
    return parent == 0 && names.contains(name)
  }
}

/// Finds entries below a directory. No link is followed.
private final class EntryFinder {
  private var cursor: DirectoryCursor

  /// Opens the directory; nil if that fails.
  init?(at path: ByteString) {
    guard let root = try? Directory.open(resolved: path) else { return nil }
    cursor = DirectoryCursor(root: root)
  }

  /// Returns the entry at a path relative to the directory, or nil if there is none.
  func entry(at path: ByteString) -> MigrationEntry? {
    guard let name = path.lastComponent, (try? cursor.move(to: path.parent.components)) != nil
    else { return nil }
    return cursor.withDirectory { directory in
      guard let status = try? directory.statusIfPresent(name) else { return nil }
      return MigrationEntry(path, name: name, status, in: directory)
    }
  }
}
