package import ArchiveStore
package import SystemIO

extension RepositoryReader {
  /// Returns the write-ahead log and the rollback journal next to a file in a snapshot. Without
  /// them, a database lacks its latest changes.
  ///
  /// - Parameter report: receives the paths at which damage makes it unknown whether there is one.
  package func sidecars(
    of path: ByteString, in snapshot: StoredSnapshot, damaged report: (PathRemark) -> Void
  ) throws -> [(path: ByteString, entry: TreeEntry)] {
    var found: [(path: ByteString, entry: TreeEntry)] = []
    for suffix in ["-wal", "-journal"] {
      let beside = path.concatenating(ByteString(suffix))
      do throws(StoreError) {
        if let entry = try entry(at: beside, in: snapshot.snapshot.tree),
          case .file(let content) = entry.node, content.size > 0
        {
          found.append((beside, entry))
        }
      } catch {
        guard error.kind == .damaged else { throw error }
        report(PathRemark(path: beside, remark: "it may exist: \(error.reason)"))
      }
    }
    return found
  }
}
