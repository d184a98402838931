internal import Codecs
internal import SystemIO

extension JointWalk {
  /// The entries that several directories have under one name.
  struct Names {
    let name: ByteString
    /// The distinct entries with their trees, after `finish`.
    private(set) var entries: [Entry] = []
    /// The trees that may also have the name.
    var unknown: [Int] = []
    /// The distinct entries, and for each the numbers of its directories: neighbouring ones, such as
    /// those of successive snapshots, mostly have equal entries, so ranges are short lists.
    private var distinct: [(entry: TreeEntry, directories: [Range<Int>])] = []
    /// The position of each entry, of many.
    private var indexes: [TreeEntry: Int] = [:]
    /// The entry of the last directory: that of the next one is often equal.
    private var last = 0

    /// The number of entries from which they are found by their hashes.
    private static let manyEntries = 8

    init(name: ByteString) { self.name = name }

    /// The distinct entries of a name, each with ascending numbers of directories.
    init(name: ByteString, distinct: [(entry: TreeEntry, directories: [Range<Int>])]) {
      (self.name, self.distinct) = (name, distinct)
      last = distinct.count
    }

    /// The only entry of a name.
    init(_ entry: TreeEntry, of trees: [Int]) {
      name = entry.name
      entries = [Entry(entry: entry, trees: trees)]
    }

    /// Adds the entry of a directory.
    mutating func add(_ entry: TreeEntry, of directory: Int) {
      guard let same = index(of: entry) else {
        last = distinct.count
        distinct.append((entry, [directory..<directory + 1]))
        if !indexes.isEmpty { indexes[entry] = last }
        return
      }
      last = same
      let ranges = distinct[same].directories
      if let end = ranges.last, end.upperBound == directory {
        distinct[same].directories[ranges.count - 1] = end.lowerBound..<directory + 1
      } else {
        distinct[same].directories.append(directory..<directory + 1)
      }
    }

    private mutating func index(of entry: TreeEntry) -> Int? {
      if last < distinct.count, distinct[last].entry == entry { return last }
      guard distinct.count >= Self.manyEntries else {
        return distinct.firstIndex { $0.entry == entry }
      }
      if indexes.isEmpty {
        for (index, found) in distinct.enumerated() { indexes[found.entry] = index }
      }
      return indexes[entry]
    }

    /// Finds the trees of each entry, in ascending order.
    ///
    /// - Parameter all: the trees of all directories, in ascending order.
    mutating func finish(_ directories: [Directory], all: [Int]) {
      // Most entries are in all directories and share one list of trees.
      if distinct.count == 1, distinct[0].directories.count == 1,
        distinct[0].directories[0] == directories.indices
      {
        entries = [Entry(entry: distinct[0].entry, trees: all)]
        distinct = []
        return
      }
      entries = distinct.map { entry, ranges in
        var trees: [Int] = []
        trees.reserveCapacity(ranges.reduce(0) { $0 + $1.count })
        for number in ranges.joined() { trees += directories[number].trees }
        if trees.count > 1 { trees.sort() }
        return Entry(entry: entry, trees: trees)
      }
      (distinct, indexes) = ([], [:])
    }

    /// The trees that have an entry of this name.
    var trees: [Int] { entries.flatMap(\.trees).sorted() }

    /// The distinct directories among the entries.
    var directories: [Directory] {
      Directory.distinct(
        entries.compactMap { found in
          guard case .directory(let tree) = found.entry.node else { return nil }
          return (tree, found.trees)
        })
    }
  }
}
