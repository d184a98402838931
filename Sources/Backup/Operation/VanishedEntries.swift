internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// Entries that the run did not find where the scan had found them.
///
/// A renamed or moved entry keeps its inode, so a second scan finds it; a replaced entry is found
/// by its path. Entries that a second scan does not find were deleted.
struct VanishedEntries {
  private let trees: [SelectedTree]
  /// The topmost vanished entries.
  private let entries: Set<EntryID>
  /// The identities of the topmost entries and of all included entries below them.
  private var identities: Set<FileIdentity> = []

  init(_ run: BackupRun) {
    trees = run.trees
    entries = run.findings.vanished
    if entries.isEmpty { return }
    for tree in trees where entries.contains(where: { $0.container == tree.number }) {
      var isMissing = MissingEntries(tree, entries)
      for (index, entry) in tree.scan.entries.enumerated()
      where isMissing.check(index) && entry.selection != .excluded {
        identities.insert(entry.status.identity)
      }
    }
  }

  var isEmpty: Bool { entries.isEmpty }

  /// Whether the directory of a container has vanished.
  func hasRoot(of container: Container) -> Bool {
    trees.contains { $0.scan.container == container && entries.contains($0.id(0)) }
  }

  /// Returns the logical paths at which a second scan found the entries; only the topmost ones.
  func paths(in scan: DeviceScan) -> [ByteString] {
    scan.containers.flatMap { container in
      found(in: container).map { container.logicalPath($0) }
    }
  }

  private func found(in scan: ContainerScan) -> [Int] {
    guard let tree = trees.first(where: { $0.scan.container == scan.container }) else { return [] }
    var found = Set(
      entries.lazy.filter { $0.container == tree.number }
        .compactMap { scan.index(of: tree.scan.path(Int($0.index))) }
        .filter { scan.entries[$0].selection != .excluded })
    for (index, entry) in scan.entries.enumerated()
    where entry.selection != .excluded && identities.contains(entry.status.identity) {
      if !isOtherLink(index, scan, of: tree) { found.insert(index) }
    }
    return found.filter { $0 == 0 || !found.contains(Int(scan.entries[$0].parent)) }.sorted()
  }

  /// Whether an entry is a hard link that already had this name, under which it is read.
  private func isOtherLink(_ index: Int, _ scan: ContainerScan, of tree: SelectedTree) -> Bool {
    let status = scan.entries[index].status
    guard status.kind == .file, let earlier = tree.scan.index(of: scan.path(index)) else {
      return false
    }
    return tree.scan.entries[earlier].status.identity == status.identity
      && !entries.contains(tree.id(earlier))
  }
}

/// The missing entries of a container, including all below them. `check` must be called in the
/// order of the scan.
struct MissingEntries {
  private let tree: SelectedTree
  private var missing: Set<Int32>

  init(_ tree: SelectedTree, _ missing: Set<EntryID>) {
    self.tree = tree
    self.missing = Set(missing.lazy.filter { $0.container == tree.number }.map(\.index))
  }

  mutating func check(_ index: Int) -> Bool {
    if missing.isEmpty { return false }
    if missing.contains(Int32(index)) { return true }
    guard index > 0, missing.contains(tree.scan.entries[index].parent) else { return false }
    missing.insert(Int32(index))
    return true
  }
}
