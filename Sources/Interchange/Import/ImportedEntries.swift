internal import ArchiveStore
internal import SystemIO

/// The stored entries of a source, in the order of the source, and then in that of the tree.
///
/// A source may give directories after their content and paths twice, so the tree is built when all
/// entries are known. Their rows are in memory that can be spilled: with 500,000 entries about 100
/// MB, of which 48 MiB stay in memory.
struct ImportedEntries {
  private var rows = SpillableArray<Row>()
  /// The paths, with a NUL between components: the order of their bytes is that of the tree.
  private var paths = SpillableArray<UInt8>()
  /// The encoded entries, and the paths of the targets of hard links.
  private var values = SpillableArray<UInt8>()

  private struct Row: BitwiseCopyable, Sendable {
    let pathStart: Int
    let valueStart: Int
    let pathLength: UInt32
    let valueLength: UInt32
    let kind: Kind
    /// The size of a file's content in bytes.
    let size: UInt64

    var isLink: Bool { kind == .link }
  }

  private enum Kind: UInt8, BitwiseCopyable, Sendable {
    case link, directory, file, other

    init(_ node: Node) {
      switch node {
      case .directory: self = .directory
      case .file: self = .file
      default: self = .other
      }
    }
  }

  /// The number of rows.
  var count: Int { rows.count }

  /// Adds a stored entry.
  mutating func append(_ entry: TreeEntry, at path: [ByteString]) throws(StoreError) {
    var size: UInt64 = 0
    if case .file(let content) = entry.node { size = content.size }
    add(path, try entry.encoded(), kind: Kind(entry.node), size: size)
  }

  /// Adds a hard link.
  mutating func append(linkTo target: [ByteString], at path: [ByteString]) {
    add(path, Self.key(target), kind: .link)
  }

  private mutating func add(
    _ path: [ByteString], _ value: [UInt8], kind: Kind, size: UInt64 = 0
  ) {
    let key = Self.key(path)
    rows.append(
      Row(
        pathStart: paths.count, valueStart: values.count, pathLength: UInt32(key.count),
        valueLength: UInt32(value.count), kind: kind, size: size))
    paths.append(key.span)
    values.append(value.span)
  }

  private static func key(_ path: [ByteString]) -> [UInt8] {
    Array(path.map(\.bytes).joined(separator: CollectionOfOne(0)))
  }

  private func value(_ row: Int) -> [UInt8] {
    let start = rows[row].valueStart
    return Array(values.copy(start..<(start + Int(rows[row].valueLength))))
  }

  private func key(_ row: Int) -> Range<Int> {
    let row = rows[row]
    return row.pathStart..<(row.pathStart + Int(row.pathLength))
  }

  private func path(_ row: Int) -> [ByteString] {
    paths.copy(key(row)).split(separator: 0).map { ByteString($0) }
  }
}

// MARK: - The tree

extension ImportedEntries {
  /// A path of the result.
  struct Result {
    let path: [ByteString]
    let found: Found
    /// The size of a file's content in bytes; nil for other entries.
    var size: UInt64?
    /// Whether an earlier path of the result has the same content (a hard link).
    var isRepeated = false
    /// Whether it replaces an entry whose name may have had other bytes in a source that does not
    /// keep them (`EntrySource.keepsNames`).
    var isAmbiguous = false
  }

  /// The entry of a path.
  enum Found {
    /// An encoded entry with the name of the path; not a directory.
    case leaf([UInt8])
    /// A directory or one of several names of a file, with the name of the path.
    case entry(TreeEntry)
    /// A hard link without a file: its target.
    case missing([ByteString])
  }

  /// Passes the last entry of each path in tree order: components compared by bytes, a directory
  /// before its content. A hard link has the entry of the file that its target named when the link
  /// was made; all names of a file have the smallest of them as their group.
  ///
  /// - Parameter prefix: the logical path above all paths.
  func forEach(below prefix: ByteString, _ body: (Result) throws -> Void) throws {
    let order = sorted()
    let leaders = leaders(order)
    let groups = groups(order, leaders)
    var last = LastPath()
    for position in order.indices where isLast(position, in: order) {
      let row = order[position]
      let path = last.path(of: paths.copy(key(Int(row))))
      guard let leader = rows[Int(row)].isLink ? leaders[row] : row else {
        let target = value(Int(row)).split(separator: 0).map { ByteString($0) }
        try body(Result(path: path, found: .missing(target)))
        continue
      }
      let (kind, size) = (rows[Int(leader)].kind, rows[Int(leader)].size)
      let group = groups[leader].flatMap { $0.count > 1 ? $0 : nil }
      var result = Result(
        path: path,
        found: try found(
          leader, at: path, isLinked: leader != row, of: group.map { prefix.appending($0.name) }))
      result.size = kind == .file ? size : nil
      result.isRepeated = group.map { $0.first != row } ?? false
      result.isAmbiguous =
        kind != .directory && position > 0 && !isLast(position - 1, in: order)
        && path.contains { name in name.bytes.contains { $0 >= 0x80 } }
      try body(result)
    }
  }

  /// The last path in tree order. The next one usually is in the same directory, and shares its
  /// names.
  private struct LastPath {
    private var path: [ByteString] = []
    /// The key of the directory, with the NUL after it.
    private var directory: ArraySlice<UInt8> = []

    /// Returns the path of a key.
    mutating func path(of key: ArraySlice<UInt8>) -> [ByteString] {
      let start = key.lastIndex(of: 0).map { $0 + 1 } ?? 0
      if start > 0, key[..<start] == directory {
        path[path.count - 1] = ByteString(key[start...])
      } else {
        path = key.split(separator: 0).map { ByteString($0) }
        directory = key[..<start]
      }
      return path
    }
  }

  /// Returns the entry of a row for a path.
  private func found(
    _ row: UInt32, at path: [ByteString], isLinked: Bool, of group: ByteString?
  ) throws(StoreError) -> Found {
    let value = value(Int(row))
    // The usual case: it has this name, and nothing changes.
    if rows[Int(row)].kind != .directory, group == nil, !path.isEmpty, !isLinked {
      return .leaf(value)
    }
    var entry = try TreeEntry(encoded: value)
    entry.name = path.last ?? entry.name
    entry.linkGroup = group
    return .entry(entry)
  }

  /// Returns the rows by path, and those of one path in the order of the source.
  private func sorted() -> [UInt32] {
    var order = Array(0..<UInt32(rows.count))
    paths.withSpan { bytes in
      order.sort { left, right in
        let difference = bytes.extracting(key(Int(left))).order(bytes.extracting(key(Int(right))))
        return difference == 0 ? left < right : difference < 0
      }
    }
    return order
  }

  /// Whether the row at a position is the last one of its path.
  private func isLast(_ position: Int, in order: [UInt32]) -> Bool {
    guard position + 1 < order.count else { return true }
    return paths.withSpan { bytes in
      bytes.extracting(key(Int(order[position])))
        .order(bytes.extracting(key(Int(order[position + 1])))) != 0
    }
  }

  /// Returns for each hard link the row of its file. Links whose target has no file before them
  /// have none, as have links to directories, which do not exist.
  private func leaders(_ order: [UInt32]) -> [UInt32: UInt32] {
    var leaders: [UInt32: UInt32] = [:]
    // In the order of the source: a link to a link finds its leader.
    for row in rows.indices where rows[row].isLink {
      guard let target = self.row(of: value(row), before: row, in: order) else { continue }
      let leader = rows[Int(target)].isLink ? leaders[target] : target
      guard let leader, isLinkable(leader) else { continue }
      leaders[UInt32(row)] = leader
    }
    return leaders
  }

  private func isLinkable(_ row: UInt32) -> Bool { rows[Int(row)].kind != .directory }

  /// Returns the last row of a path before another row, by binary search.
  private func row(of path: [UInt8], before last: Int, in order: [UInt32]) -> UInt32? {
    paths.withSpan { bytes in
      var range = 0..<order.count
      while !range.isEmpty {
        let middle = (range.lowerBound + range.upperBound) / 2
        let difference = bytes.extracting(key(Int(order[middle]))).order(path.span)
        if difference < 0 || difference == 0 && Int(order[middle]) < last {
          range = (middle + 1)..<range.upperBound
        } else {
          range = range.lowerBound..<middle
        }
      }
      guard range.lowerBound > 0 else { return nil }
      let found = order[range.lowerBound - 1]
      return bytes.extracting(key(Int(found))).order(path.span) == 0 ? found : nil
    }
  }

  /// The names of a file with hard links.
  private struct LinkGroup {
    /// The row of the first name in tree order.
    let first: UInt32
    /// The smallest path by its bytes, which is another one for `a-b` and `a/b`.
    var name: ByteString
    var count = 0
  }

  /// Returns the names of each file with hard links.
  private func groups(_ order: [UInt32], _ leaders: [UInt32: UInt32]) -> [UInt32: LinkGroup] {
    if leaders.isEmpty { return [:] }
    let linked = Set(leaders.values)
    var groups: [UInt32: LinkGroup] = [:]
    for position in order.indices where isLast(position, in: order) {
      let row = order[position]
      guard let leader = leaders[row] ?? (linked.contains(row) ? row : nil) else { continue }
      let name = ByteString(joining: path(Int(row)))
      var group = groups[leader] ?? LinkGroup(first: row, name: name)
      group.name = min(group.name, name)
      group.count += 1
      groups[leader] = group
    }
    return groups
  }
}
