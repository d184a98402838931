internal import ArchiveStore
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// A revision of a snap that a refresh made by copying another one, together with that original.
/// Its files have new inodes and change times, and most have the contents recorded for the
/// originals (docs/decisions/0007-copied-revisions.md).
struct RevisionCopy {
  /// The revision recorded in the state, which is now an old one.
  private let original: ContainerScan
  /// The time from which the app could change the copy.
  private let start: Timestamp
  /// The directory of the original for each directory of the copy.
  private var directories: [Int: Int] = [0: 0]
  /// The children of these directories, by name.
  private var children: [Int: [ByteString: Int]] = [:]

  /// Finds the original. Returns nil if the tree is not a revision, if it is the recorded one, or
  /// if the original no longer exists.
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

  /// Enters a directory of the copy, if the original has one of that name.
  mutating func enter(_ child: Int, of directory: Int, in scan: borrowing ContainerScan) {
    guard let found = self.child(child, of: directory, in: scan),
      original.entries[found].status.kind == .directory
    else { return }
    directories[child] = found
    children[found] = Self.names(of: found, in: original)
  }

  /// Returns the original of a file, or nil unless the file looks like an unchanged copy.
  func file(
    _ index: Int, of directory: Int, in scan: borrowing ContainerScan, _ known: KnownEntry
  ) -> File? {
    guard let found = child(index, of: directory, in: scan), let stored = known.entry else {
      return nil
    }
    let (status, original) = (scan.entries[index].status, original.entries[found].status)
    guard ChangeRules.looksCopied(status, from: original, known, inUseSince: start) else {
      return nil
    }
    return File(stored: stored, original: original)
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

extension RevisionCopy {
  /// The original of a copied file.
  struct File: Sendable {
    /// The stored entry of the original.
    let stored: TreeEntry
    let original: FileStatus
  }
}

extension SelectedTree {
  /// Whether this is the directory that the state records for the container, now an old revision of
  /// the same app on the same file system.
  fileprivate func isOriginal(
    of container: Container, _ known: KnownContainer, _ root: FileStatus
  ) -> Bool {
    guard scan.container.kind == .oldRevision, scan.container.owner == container.owner,
      let own = scan.entries.first?.status.identity
    else { return false }
    return own.inode == known.entry.inode && own.device == root.identity.device
  }
}
