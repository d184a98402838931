internal import Codecs
internal import SystemIO

extension JointWalk {
  /// The entries of several directories of one page, merged.
  ///
  /// The directories of hundreds of snapshots at one path differ little. Held side by side, they
  /// exceed the memory limit of a walk, and then all of them would be read again after each
  /// subdirectory. So each is read, compared with the one before it, merged and released: the time
  /// depends on the entries that differ and the memory on the distinct ones.
  struct MergedDirectories {
    /// The encoded size of the distinct entries in bytes.
    private(set) var size = 0
    /// The numbers of the directories.
    private(set) var directories: Set<Int> = []
    /// The last directory that was added, or nil if none was added since the names were ordered.
    private var last: Int?
    private var page = EncodedPage.empty
    /// The entries of that directory.
    private var current: [Current] = []
    /// The distinct entries in the order of the first directory that has them.
    private var distinct: [(entry: TreeEntry, directories: [Range<Int>])] = []
    /// Their names, so that ordering does not copy the entries.
    private var names: [ByteString] = []
    /// The indexes in `distinct` of the entries that the last directory does not have, by their
    /// bytes.
    private var indexes: [ByteString: Int] = [:]
    /// The names that remain, the next one last.
    private var remaining: [Names] = []

    /// An entry of the last directory.
    private struct Current {
      /// Its index in `distinct`.
      var index: Int
      /// The first of the consecutive directories that have it.
      var first: Int
    }

    /// Adds a directory of one page. The numbers must ascend.
    mutating func add(
      _ tree: RepositoryReader.TreeBytes, of number: Int
    ) throws(StoreError) {
      let next = try page.next(tree.frame, range: tree.range, object: tree.object) {
        names[current[$0].index]
      }
      if let last, last + 1 < number { pause(after: last, until: number) }
      var entries: [Current] = []
      entries.reserveCapacity(next.known.count)
      var compared = 0
      for known in next.known {
        guard let known else {
          entries.append(Current(index: 0, first: number))
          continue
        }
        for index in compared..<known { end(index, before: number) }
        entries.append(current[known])
        compared = known + 1
      }
      for index in compared..<current.count { end(index, before: number) }
      var others = next.others.makeIterator()
      for index in entries.indices where next.known[index] == nil {
        guard let entry = others.next() else { break }
        entries[index].index = self.index(of: entry, number: index, in: next.page)
      }
      (page, current, last) = (next.page, entries, number)
      directories.insert(number)
    }

    /// Returns the index of an entry of a page that the last directory does not have.
    private mutating func index(
      of entry: TreeEntry, number: Int, in page: EncodedPage
    ) -> Int {
      if !indexes.isEmpty, let index = indexes[page.entry(number)] { return index }
      size += page.size(number)
      distinct.append((entry, []))
      names.append(entry.name)
      return distinct.count - 1
    }

    /// Records the directories of an entry of the last directory that the next one does not have.
    private mutating func end(_ position: Int, before number: Int) {
      let entry = current[position]
      add(entry.first..<number, to: entry.index)
      indexes[page.entry(position)] = entry.index
    }

    private mutating func add(_ range: Range<Int>, to index: Int) {
      let count = distinct[index].directories.count
      if count > 0, distinct[index].directories[count - 1].upperBound == range.lowerBound {
        let first = distinct[index].directories[count - 1].lowerBound
        distinct[index].directories[count - 1] = first..<range.upperBound
      } else {
        distinct[index].directories.append(range)
      }
    }

    /// Records that the directories after `last` and before `number` are not merged.
    private mutating func pause(after last: Int, until number: Int) {
      for index in current.indices {
        add(current[index].first..<(last + 1), to: current[index].index)
        current[index].first = number
      }
    }

    /// Orders the names, after all directories were added, and drops those up to `name`. Returns
    /// false if none was added.
    mutating func finish(after name: ByteString?) -> Bool {
      guard let last else { return false }
      for entry in current { add(entry.first..<(last + 1), to: entry.index) }
      let order = names.indices.sorted { names[$0] < names[$1] }
      remaining = []
      var end = order.count
      while end > 0 {
        let name = names[order[end - 1]]
        var start = end - 1
        while start > 0, names[order[start - 1]] == name { start -= 1 }
        remaining.append(Names(name: name, distinct: order[start..<end].map { distinct[$0] }))
        end = start
      }
      (self.last, page, current) = (nil, .empty, [])
      (distinct, names, indexes) = ([], [], [:])
      if let name {
        while let next = remaining.last, !(name < next.name) { remaining.removeLast() }
      }
      return true
    }

    /// The next name, or nil at the end.
    var name: ByteString? { remaining.last?.name }

    /// Returns the entries of the next name if it is `name`.
    mutating func remove(_ name: ByteString) -> Names? {
      self.name == name ? remaining.popLast() : nil
    }
  }
}
