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
    let isLink: Bool
  }

  /// The number of rows.
  var count: Int { rows.count }

  /// Adds a stored entry.
  mutating func append(_ entry: [UInt8], at path: [ByteString]) {
    add(path, entry, isLink: false)
  }

  /// Adds a hard link.
  mutating func append(linkTo target: [ByteString], at path: [ByteString]) {
    add(path, Self.key(target), isLink: true)
  }

  private mutating func add(_ path: [ByteString], _ value: [UInt8], isLink: Bool) {
    let key = Self.key(path)
    rows.append(
      Row(
        pathStart: paths.count, valueStart: values.count, pathLength: UInt32(key.count),
        valueLength: UInt32(value.count), isLink: isLink))
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
    /// The entry, with the name of the path; nil if it is a hard link without a file.
    let entry: TreeEntry?
    /// The target of a hard link without a file.
    let missingTarget: [ByteString]
    /// Whether an earlier path of the result has the same content (a hard link).
    let isRepeated: Bool
    /// Whether it replaces an entry whose name may have had other bytes in a source that does not
    /// keep them (`EntrySource.keepsNames`).
    var isAmbiguous = false
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
    for position in order.indices where isLast(position, in: order) {
      let row = Int(order[position])
      let path = path(row)
      let leader = rows[row].isLink ? leaders[order[position]] : order[position]
      guard let leader else {
        let target = value(row).split(separator: 0).map { ByteString($0) }
        try body(Result(path: path, entry: nil, missingTarget: target, isRepeated: false))
        continue
      }
      var entry = try TreeEntry(encoded: value(Int(leader)))
      entry.name = path.last ?? entry.name
      var isRepeated = false
      if let group = groups[leader], group.count > 1 {
        entry.linkGroup = prefix.appending(group.name)
        isRepeated = group.first != order[position]
      }
      var result = Result(path: path, entry: entry, missingTarget: [], isRepeated: isRepeated)
      result.isAmbiguous =
        position > 0 && !isLast(position - 1, in: order)
        && path.contains { name in name.bytes.contains { $0 >= 0x80 } }
      try body(result)
    }
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

  /// Returns for each hard link the row of its file. Links whose target has no file before them have
  /// none, as have links to directories, which do not exist.
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

  private func isLinkable(_ row: UInt32) -> Bool {
    guard let entry = try? TreeEntry(encoded: value(Int(row))) else { return false }
    if case .directory = entry.node { return false }
    return true
  }

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
