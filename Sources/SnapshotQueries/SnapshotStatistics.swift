package import ArchiveStore
package import SystemIO

/// The totals of a snapshot by app, group or directory and by data class.
package struct SnapshotStatistics: Sendable {
  /// The totals by owner, then class, both in byte order.
  package private(set) var rows: [Row] = []
  /// The number of directories, or parts of one, that cannot be read; their content is not counted.
  package private(set) var damaged = 0

  /// The totals of one owner and class.
  package struct Row: Sendable, Hashable {
    /// The first two components of the paths: `apps/com.example.app`.
    package let owner: ByteString
    package let dataClass: String
    package fileprivate(set) var files = 0
    /// The bytes of the files; a hard-linked file counts once, at its first name.
    package fileprivate(set) var bytes: UInt64 = 0
  }

  /// Walks a snapshot and counts its files. Each directory that cannot be read is reported at once
  /// and not collected, since their number is unlimited.
  package init(
    of stored: StoredSnapshot, from reader: RepositoryReader,
    unreadable report: (PathRemark) -> Void
  ) throws {
    var count = Count(stored.snapshot.classes)
    try reader.walkPastDamage(stored.snapshot.tree) { path, finding in
      switch finding {
      case .entry(let entry): count.add(entry, at: path)
      case .damage(let error), .lost(_, let error):
        damaged += 1
        report(PathRemark(path: path, remark: error.reason))
      }
      return .enter
    }
    rows = count.rows.values.sorted { ($0.owner, $0.dataClass) < ($1.owner, $1.dataClass) }
  }

  /// The running totals of the walk. An entry has the class that the snapshot's table names for its
  /// path or, if the table has none, for the nearest path above it.
  private struct Count {
    private let table: [ByteString: String]
    /// The classes of the directories above.
    private var above: [String] = []
    private var linked = LinkedContents()
    var rows: [Key: Row] = [:]

    struct Key: Hashable {
      let owner: ByteString
      let dataClass: String
    }

    init(_ classes: [ClassRun]) {
      table = Dictionary(classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
    }

    mutating func add(_ entry: TreeEntry, at path: ByteString) {
      let depth = path.bytes.count { $0 == UInt8(ascii: "/") }
      above.removeSubrange(min(depth, above.count)...)
      let dataClass = table[path] ?? above.last ?? "unknown"
      above.append(dataClass)
      guard case .file(let content) = entry.node else { return }
      let owner = path.subject
      let key = Key(owner: owner, dataClass: dataClass)
      var row = rows[key] ?? Row(owner: owner, dataClass: dataClass)
      row.files += 1
      if linked.isFirstName(of: content, in: entry.linkGroup) {
        row.bytes.addClamping(content.size)
      }
      rows[key] = row
    }
  }
}
