internal import DeviceScan
internal import SystemIO

/// Directories of LevelDB and RocksDB. The file `CURRENT` names a manifest such as
/// `MANIFEST-000012`, which lists the other files. A listed file is complete and never changed,
/// only replaced by another.
///
/// A copy can be opened only if it has all files of its manifest. If a store gets new files after
/// the scan found its old ones, the manifest that is then read lists some that are not read.
enum ManifestStores {
  private static let current = Array("CURRENT".utf8)
  private static let manifest = Array("MANIFEST-".utf8)

  /// Whether the content of a file with this name determines which other files a store needs.
  static func isList(_ name: ByteString) -> Bool {
    name.bytes.elementsEqual(current) || name.bytes.starts(with: manifest)
  }

  /// Returns the logical paths of the stores whose copies may lack files, in order: files were
  /// created or removed between the scan and the reading of a list, or removed before they were
  /// read.
  static func changed(in run: BackupRun) -> [ByteString] {
    let findings = run.findings
    let parents = Set(
      findings.vanished.lazy.filter { $0.index > 0 }.map { run.saver.parent(of: $0) })
    return findings.changedStores.union(parents.filter { isStore($0, run.trees) })
      .map { run.trees.logicalPath(of: $0) }.sorted()
  }

  /// Whether a directory is that of a store, by the names of its entries.
  static func isStore(_ directory: EntryID, _ trees: [SelectedTree]) -> Bool {
    let tree = trees[Int(directory.container)]
    guard tree.child(current.span, of: Int(directory.index)) != nil else { return false }
    return tree.children(of: Int(directory.index)).contains { child in
      tree.scan.withName(Int(child)) { name in
        name.count > manifest.count
          && name.extracting(0..<manifest.count).hasSameBytes(as: manifest.span)
      }
    }
  }
}
