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
    private var places: [TreeEntry: Int] = [:]
    /// The entry of the last directory: that of the next one is often equal.
    private var last = 0

    /// The number of entries from which they are found by their hashes.
    private static let manyEntries = 8

    init(name: ByteString) { self.name = name }

    /// The only entry of a name.
    init(_ entry: TreeEntry, of trees: [Int]) {
      name = entry.name
      entries = [Entry(entry: entry, trees: trees)]
    }

    /// Adds the entry of a directory. Returns whether no other one had it.
    @discardableResult
    mutating func add(_ entry: TreeEntry, of directory: Int) -> Bool {
      guard let same = place(of: entry) else {
        last = distinct.count
        distinct.append((entry, [directory..<directory + 1]))
        if !places.isEmpty { places[entry] = last }
        return true
      }
      last = same
      let ranges = distinct[same].directories
      if let end = ranges.last, end.upperBound == directory {
        distinct[same].directories[ranges.count - 1] = end.lowerBound..<directory + 1
      } else {
        distinct[same].directories.append(directory..<directory + 1)
      }
      return false
    }

    private mutating func place(of entry: TreeEntry) -> Int? {
      if last < distinct.count, distinct[last].entry == entry { return last }
      guard distinct.count >= Self.manyEntries else {
        return distinct.firstIndex { $0.entry == entry }
      }
      if places.isEmpty {
        for (place, found) in distinct.enumerated() { places[found.entry] = place }
      }
      return places[entry]
    }

    /// Releases what is needed only to add entries.
    mutating func compact() { places = [:] }

    /// Finds the trees of each entry, in ascending order.
    mutating func finish(_ directories: [Directory]) {
      entries = distinct.map { entry, ranges in
        var trees = ranges.flatMap { $0.flatMap { directories[$0].trees } }
        if trees.count > 1 { trees.sort() }
        return Entry(entry: entry, trees: trees)
      }
      (distinct, places) = ([], [:])
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

  /// The entries of several directories of one page, merged.
  ///
  /// The directories of hundreds of snapshots at one path differ little. Held side by side, they
  /// exceed the memory limit of a walk, and then all of them would be read again after each
  /// subdirectory. So each is read, merged and released; the memory depends on the distinct entries.
  struct MergedDirectories {
    /// The numbers of the directories.
    private(set) var directories: Set<Int> = []
    /// The approximate encoded size of the distinct entries in bytes.
    private(set) var size = 0
    private var byName: [ByteString: Names] = [:]
    /// The names that remain, the next one last.
    private var remaining: [Names] = []
    /// Whether directories were added since the names were ordered.
    private var isChanged = false

    /// Adds the entries of a directory, with their encoded size in bytes.
    mutating func add(_ entries: [TreeEntry], size bytes: Int, of directory: Int) {
      isChanged = true
      directories.insert(directory)
      var distinct = 0
      for entry in entries
      where byName[entry.name, default: Names(name: entry.name)].add(entry, of: directory) {
        distinct += 1
      }
      size += distinct * bytes / max(1, entries.count)
    }

    /// Orders the names, after all directories were added, and drops those up to `last`. Returns
    /// false if none was added.
    mutating func finish(after last: ByteString?) -> Bool {
      guard isChanged else { return false }
      isChanged = false
      remaining = byName.values.sorted { $1.name < $0.name }
      byName = [:]
      if let last {
        while let next = remaining.last, !(last < next.name) { remaining.removeLast() }
      }
      for number in remaining.indices { remaining[number].compact() }
      return true
    }

    /// The next name, or nil at the end.
    var name: ByteString? { remaining.last?.name }

    /// Returns the entries of the next name if it is `name`.
    mutating func take(_ name: ByteString) -> Names? {
      self.name == name ? remaining.popLast() : nil
    }
  }
}
