package import DeviceScan
internal import SandboxModel
package import SystemIO

/// The effect of a migration between two devices on one container: the entries that the policy stores,
/// compared with those of the counterpart.
package struct ContainerPreview: Sendable {
  /// The container and its counterpart.
  package let pairing: ContainerPairing
  /// The files to copy.
  package private(set) var copied = EntryTotals()
  /// The files and links that the counterpart has already, by type, size and time.
  package private(set) var present = 0
  /// The paths in the container at which the counterpart has another entry. They stay as they are.
  package private(set) var conflicts: [ByteString] = []
  /// The files that the policy excludes from backups, and therefore from a migration.
  package private(set) var excluded = EntryTotals()
  /// The files for which the target has no place.
  package private(set) var withoutPlace = EntryTotals()

  /// Compares the containers of a scan with their counterparts. Reads only the counterparts'
  /// directories.
  ///
  /// - Parameter scan: The scan of the source, which has the containers of the pairs; a container that
  ///   is missing in it counts as empty.
  package static func make(_ pairs: [ContainerPairing], in scan: DeviceScan) -> [ContainerPreview] {
    pairs.map { pair in
      var preview = ContainerPreview(pair)
      if let found = scan.containers.first(where: {
        $0.container.logicalPrefix == pair.source.logicalPrefix
      }) {
        preview.add(found)
      }
      return preview
    }
  }

  private init(_ pairing: ContainerPairing) { self.pairing = pairing }

  private mutating func add(_ scan: ContainerScan) {
    guard case .present(let path) = pairing.counterpart,
      let root = try? Directory.open(resolved: path)
    else {
      // The container is created, so it is empty, or has no counterpart.
      return add(scan) { _ in nil }
    }
    var cursor = DirectoryCursor(root: root)
    add(scan) { inner in
      guard let name = inner.lastComponent, (try? cursor.move(to: inner.parent.components)) != nil
      else { return nil }
      return cursor.withDirectory { directory in
        guard let status = (try? directory.statusIfPresent(name)) ?? nil else { return nil }
        return MigrationEntry(inner, name: name, status, in: directory)
      }
    }
  }

  private mutating func add(_ scan: ContainerScan, find: (ByteString) -> MigrationEntry?) {
    for index in 0..<scan.entries.count {
      let entry = scan.entries[index]
      if entry.status.kind == .directory { continue }
      if entry.selection == .excluded {
        excluded.add(entry.status)
      } else if pairing.counterpart == .noHome {
        withoutPlace.add(entry.status)
      } else if Self.isMetadata(scan.name(index), at: entry.parent) {
        // The target's container has its own.
        continue
      } else {
        add(entry.status, at: scan.path(index), find)
      }
    }
  }

  private mutating func add(
    _ status: FileStatus, at path: ByteString, _ find: (ByteString) -> MigrationEntry?
  ) {
    guard let found = find(path) else { return copied.add(status) }
    let isSame =
      found.kind == status.kind
      && (status.kind != .file || found.size == status.size && found.modified == status.modified)
    if isSame { present += 1 } else { conflicts.append(path) }
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
