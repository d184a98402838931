internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// A snap's revision that a refresh made by copying another one, seen beside that one: its files have
/// new inodes and times of change, and most have the contents that are known of the originals
/// (docs/decisions/0007-copied-revisions.md).
struct RevisionCopy {
  /// The revision that the state knows, which is an old one now.
  private let original: ContainerScan
  /// Since when the app can have changed the copy.
  private let start: Timestamp
  /// The directory of the original for each directory of the copy.
  private var directories: [Int: Int] = [0: 0]
  /// What these hold.
  private var children: [Int: [ByteString: Int]] = [:]

  /// Finds the original; nothing where the tree is no revision, or the one that the state knows, or
  /// where the original is not there any more.
  init?(_ tree: SelectedTree, among trees: [SelectedTree], _ known: KnownContainer?) {
    let container = tree.scan.container
    guard container.kind == .revision || container.kind == .systemRevision,
      let start = container.inUseSince, let known, let root = tree.scan.entries.first,
      root.status.identity.inode != known.entry.inode,
      let original = trees.first(where: { $0.isOriginal(of: container, known, root.status) })
    else { return nil }
    self.original = original.scan
    self.start = start
    children[0] = Self.names(of: 0, in: original.scan)
  }

  /// Takes a directory of the copy in hand, if the original has one of that name.
  mutating func enter(_ child: Int, of directory: Int, in scan: borrowing ContainerScan) {
    guard let found = self.child(child, of: directory, in: scan),
      original.entries[found].status.kind == .directory
    else { return }
    directories[child] = found
    children[found] = Self.names(of: found, in: original)
  }

  /// What a file was copied from, if it looks like a copy that was not changed since.
  func file(
    _ index: Int, of directory: Int, in scan: borrowing ContainerScan, _ known: KnownEntry
  ) -> CopiedFile? {
    guard let found = child(index, of: directory, in: scan), let stored = known.entry else {
      return nil
    }
    let (status, original) = (scan.entries[index].status, original.entries[found].status)
    guard ChangeRules.looksCopied(status, from: original, known, inUseSince: start) else {
      return nil
    }
    return CopiedFile(stored: stored, original: original)
  }

  private func child(
    _ index: Int, of directory: Int, in scan: borrowing ContainerScan
  ) -> Int? {
    directories[directory].flatMap { children[$0]?[scan.name(index)] }
  }

  private static func names(of directory: Int, in scan: ContainerScan) -> [ByteString: Int] {
    Dictionary(
      scan.entries[directory].children.map { (scan.name($0), $0) }, uniquingKeysWith: { $1 })
  }
}

/// What a file was copied from.
struct CopiedFile: Sendable {
  /// The original as it is stored.
  let stored: TreeEntry
  let original: FileStatus
}

extension SelectedTree {
  /// Whether this is the directory that the state knows as a container's, an old revision of the same
  /// app's by now, on the same file system.
  fileprivate func isOriginal(
    of container: Container, _ known: KnownContainer, _ root: FileStatus
  ) -> Bool {
    guard scan.container.kind == .oldRevision, scan.container.owner == container.owner,
      let own = scan.entries.first?.status.identity
    else { return false }
    return own.inode == known.entry.inode && own.device == root.identity.device
  }
}

extension BackupWorker {
  /// The entry of a file that a refresh copied: its content as the original is stored, all else as it
  /// is. Nothing where the file has to be read: it is another one since the scan, or was begun before
  /// the original stood still.
  mutating func readCopy(
    _ index: Int, _ copied: CopiedFile, in directory: DirectoryContext
  ) throws -> ReadEntry? {
    let path = directory.path.appending(directory.scan.name(index))
    do {
      return try inDirectory(directory) { worker, opened in
        try worker.makeCopy(index, path, copied, of: directory, opened)
      }
    } catch is SystemError {
      // Reading it says what is wrong.
      return nil
    }
  }

  private borrowing func makeCopy(
    _ index: Int, _ path: ByteString, _ copied: CopiedFile, of directory: DirectoryContext,
    _ opened: borrowing Directory
  ) throws -> ReadEntry? {
    let name = directory.scan.name(index)
    let scanned = directory.scan.entries[index].status
    let status = try opened.status(name)
    // A file's flags are those of its directory when it is made, and no copy takes the original's over.
    guard status.isSameContent(as: scanned), status.identity == scanned.identity,
      ChangeRules.wasBegun(status, after: copied.original), copied.stored.flags == 0,
      try opened.flags() ?? 0 == 0
    else { return nil }
    let metadata = try readMetadata(opened.attributes(of: name), path) { nil }
    let entry = TreeEntry(
      name: name, node: copied.stored.node, status: status, attributes: metadata.attributes)
    return ReadEntry(
      entry: entry, status: status,
      isStable: metadata.isWhole
        && ChangeRules.isStable(status, readAt: run.now, in: run.clock(of: directory.tree.number)))
  }
}
