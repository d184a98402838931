internal import SandboxModel
internal import SystemIO

extension TreeCopy {
  /// Whether an entry of a device is not copied: the program's own, such as the trash and the
  /// locks. Of these, only the safe harbor has apps' data.
  static func isExcluded(_ path: ByteString) -> Bool {
    path.parent == OwnNames.directory && path.lastComponent != "safe-harbor"
  }

  /// Returns the minimum number of bytes and of entries that a copy of a device uses on a volume:
  /// directories and the holes of files count no bytes. Returns nil if the device cannot be read
  /// completely, or has too many entries to be copied.
  ///
  /// - Throws: `OperationError`: `interrupted`.
  static func size(
    of source: consuming Directory, on space: VolumeSpace, isStopping: () -> Bool
  ) throws(OperationError) -> (bytes: UInt64, entries: UInt64)? {
    var cursor = DirectoryCursor(root: source)
    var (bytes, entries) = (UInt64(0), 0)
    var linked: Set<FileIdentity> = []
    var pending: [ByteString] = [""]
    while let path = pending.popLast() {
      if isStopping() { throw .scenarioInterrupted }
      let found = try? cursor.withDirectory(at: path.components) { directory throws(SystemError) in
        try directory.names().map { name throws(SystemError) in
          (name: name, status: try directory.status(name))
        }
      }
      guard let found else { return nil }
      for (name, status) in found where !isExcluded(path.appending(name)) {
        entries += 1
        if status.kind == .directory, !status.isMountPoint { pending.append(path.appending(name)) }
        guard status.kind == .file, status.links == 1 || linked.insert(status.identity).inserted
        else { continue }
        bytes.addClamping(space.allocated(by: min(status.size, status.allocated)))
      }
      if entries > entryLimit { return nil }
    }
    return (bytes, UInt64(entries))
  }
}
