internal import ArchiveStore
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// The comparison of a bundle on the device with its record in a snapshot.
///
/// Names, types and sizes are compared, and the contents of files of the same size whose
/// modification times differ. Entries that cannot be read on either side count as equal: `check`
/// and `backup` report them.
struct BundleComparison {
  /// The maximum bytes of contents to compare in one bundle.
  static let limit: UInt64 = 64 << 20

  private let scan: ContainerScan
  private let time: Timestamp
  private let reader: RepositoryReader
  private let lookup: EntryLookup
  private var left = limit

  /// - Parameter time: The time of the snapshot.
  init(_ scan: ContainerScan, since time: Timestamp, _ reader: RepositoryReader) {
    (self.scan, self.time, self.reader) = (scan, time, reader)
    lookup = EntryLookup(scan)
  }

  /// Returns the number of entries that differ. Entries below a directory that one side lacks are
  /// not counted.
  ///
  /// - Throws: `StoreError` if the snapshot cannot be read at all.
  mutating func differences(from snapshot: StoredSnapshot) throws -> Int {
    let reader = self.reader
    guard
      case .directory(let tree, _) = try reader.source(
        scan.container.logicalPrefix, in: snapshot)
    else { return 0 }
    var (count, stored): (Int, Set<ByteString>) = (0, [])
    // The directories that cannot be read in the snapshot: their entries are unknown.
    var damaged: Set<ByteString> = []
    try reader.walkTogether([tree]) { path, found in
      guard case .entries(let entries, _) = found, let entry = entries.first?.entry else {
        damaged.insert(path)
        return .skip
      }
      stored.insert(path)
      guard let index = lookup.index(of: path), isSame(entry, index, at: path) else {
        count += 1
        return .skip
      }
      return .enter
    }
    return count + added(besides: stored, damaged)
  }

  /// Returns the number of topmost entries that were created after the snapshot, which a backup
  /// would store.
  private func added(besides stored: Set<ByteString>, _ damaged: Set<ByteString>) -> Int {
    var (count, pending): (Int, [(index: Int, path: ByteString)]) = (0, [(0, "")])
    if scan.entries.isEmpty || damaged.contains("") { return 0 }
    while let (directory, path) = pending.popLast() {
      for child in scan.entries[directory].children {
        let (entry, inner) = (scan.entries[child], path.appending(scan.name(child)))
        if stored.contains(inner) {
          let isEntered = entry.status.kind == .directory && !damaged.contains(inner)
          if isEntered { pending.append((child, inner)) }
        } else if entry.selection == .included, entry.status.changed > time {
          count += 1
        }
      }
    }
    return count
  }

  private mutating func isSame(_ entry: TreeEntry, _ index: Int, at path: ByteString) -> Bool {
    let status = scan.entries[index].status
    switch entry.node {
    case .directory: return status.kind == .directory
    case .symlink: return status.kind == .symlink
    case .file(let content):
      guard status.kind == .file, status.size == content.size else { return false }
      return status.modified == entry.modified || hasSameContent(content, path)
    default: return true
    }
  }

  private mutating func hasSameContent(_ content: Content, _ path: ByteString) -> Bool {
    guard content.size <= left, let name = path.lastComponent else { return true }
    left -= content.size
    do {
      var cursor = DirectoryCursor(root: try Directory.open(resolved: scan.container.absolutePath))
      let file = try cursor.withDirectory(at: path.parent.components) {
        directory throws(SystemError) in
        try directory.fileUntouched(name)
      }
      guard let bytes = try file.readAll(limit: Int(content.size)) else { return false }
      return try Self.isEqual(bytes, content, from: reader)
    } catch { return true }
  }

  private static func isEqual(
    _ bytes: [UInt8], _ content: Content, from reader: RepositoryReader
  ) throws -> Bool {
    guard UInt64(bytes.count) == content.size else { return false }
    var (isSame, end): (Bool, Int) = (true, 0)
    try reader.readContent(content) { offset, blob in
      let start = Int(offset)
      guard start >= end, blob.count <= bytes.count - start else {
        isSame = false
        return
      }
      isSame = isSame && bytes[end..<start].allSatisfy { $0 == 0 }
      for index in blob.indices where isSame { isSame = bytes[start + index] == blob[index] }
      end = start + blob.count
    }
    return isSame && bytes[end...].allSatisfy { $0 == 0 }
  }
}
