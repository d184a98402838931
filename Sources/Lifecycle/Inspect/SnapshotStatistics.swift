public import ArchiveStore
public import SystemIO

/// What a snapshot holds of each app, group or directory and each data class.
public struct SnapshotStatistics: Sendable {
  /// By owner, then class, both in the order of their bytes.
  public private(set) var rows: [Row] = []
  /// How many directories, or parts of one, cannot be read; what they hold is not counted.
  public private(set) var damaged = 0

  /// What one owner has of one class.
  public struct Row: Sendable, Hashable {
    /// The first two components of the paths: `apps/com.example.app`.
    public let owner: ByteString
    public let dataClass: String
    public fileprivate(set) var files = 0
    /// Bytes of the files; a file of several names counts once, by the first of them.
    public fileprivate(set) var bytes: UInt64 = 0
  }

  /// Walks a snapshot and counts; tells each directory that cannot be read, and does not keep it: there
  /// may be more than memory holds.
  public init(
    of stored: StoredSnapshot, from reader: RepositoryReader, unreadable tell: (PathRemark) -> Void
  ) throws {
    var count = Count(stored.snapshot.classes)
    try reader.walkPastDamage(stored.snapshot.tree) { path, finding in
      switch finding {
      case .entry(let entry): count.add(entry, at: path)
      case .damage(let error), .lost(_, let error):
        damaged += 1
        tell(PathRemark(path: path, remark: error.reason))
      }
      return .enter
    }
    rows = count.rows.values.sorted { ($0.owner, $0.dataClass) < ($1.owner, $1.dataClass) }
  }

  /// A count on its way down the tree: a path has the class of the nearest path above it, or its
  /// own, that the snapshot's table names.
  private struct Count {
    private let table: [ByteString: String]
    /// The classes of the directories above.
    private var above: [String] = []
    /// What the first name of each file of several names holds: as many at most as there are entries in
    /// the distinct trees, however often the snapshot names these.
    private var linked: [ByteString: Content] = [:]
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
      let parts = path.components.prefix(2).map(\.bytes)
      let owner = ByteString(parts.joined(separator: [UInt8(ascii: "/")]))
      let key = Key(owner: owner, dataClass: dataClass)
      var row = rows[key] ?? Row(owner: owner, dataClass: dataClass)
      row.files += 1
      if isFirstName(of: content, in: entry.linkGroup) { row.bytes.addClamping(content.size) }
      rows[key] = row
    }

    /// Whether no earlier name of the file had this content; a name with another one is restored as a
    /// file of its own.
    private mutating func isFirstName(of content: Content, in group: ByteString?) -> Bool {
      guard let group else { return true }
      guard let first = linked[group] else {
        linked[group] = content
        return true
      }
      return first != content
    }
  }
}
