internal import Codecs
internal import SystemIO

extension JointWalk {
  /// The directories that several trees have at one path, read side by side.
  struct Level: TreeWalk.Holder {
    let path: ByteString
    var directories: [Directory]
    private let alike: Int
    /// The pages that all trees share, which are skipped; nil until all directories are open.
    private var common: Set<Digest>?
    /// The last directory that read each page of a table.
    private var readers: [Digest: Int] = [:]
    /// The entries of the directories of one page that remain.
    private var merged = MergedDirectories()
    /// The directories that are not merged.
    private(set) var separate: [Int]
    /// The name taken last.
    private var last: ByteString?
    /// The trees of all directories in ascending order, if there are several directories.
    private let trees: [Int]

    /// - Parameter alike: the number of trees if content shared by all is skipped, otherwise 0.
    init(path: ByteString, directories: [Directory], alike: Int) {
      self.path = path
      self.directories = directories
      self.alike = alike
      trees = directories.count > 1 ? directories.flatMap(\.trees).sorted() : []
      separate = Array(directories.indices)
    }

    /// Whether the directories were opened, and their pages are held.
    var isOpen: Bool { common != nil }

    var size: Int { separate.reduce(merged.size) { $0 + directories[$1].size } }

    mutating func forget() {
      common = nil
      readers = [:]
      merged = MergedDirectories()
      separate = Array(directories.indices)
      for number in directories.indices { directories[number].forget() }
    }

    /// Opens a directory. Of several, those of one page are merged and released, unless pages are
    /// compared.
    mutating func open(_ number: Int, _ reader: RepositoryReader) throws(StoreError) {
      guard alike == 0, directories.count > 1 else { return try directories[number].open(reader) }
      if let page = try directories[number].openUnlessOnePage(reader) {
        try merged.add(page, of: number)
      }
    }

    /// Prepares the merged directories for reading after all directories were opened.
    mutating func finishOpening() {
      guard merged.finish(after: last) else { return }
      separate.removeAll { merged.directories.contains($0) }
    }

    /// Finds the pages that need not be read because all trees share them.
    mutating func findCommonPages() {
      guard common == nil else { return }
      common = []
      guard directories.reduce(0, { $0 + $1.trees.count }) == alike else { return }
      let pages = directories.map { Set($0.pages) }
      guard var all = pages.first else { return }
      for other in pages.dropFirst() { all.formIntersection(other) }
      common = all
    }

    /// Moves a directory to its next page with an entry, skipping shared pages. A page that another
    /// directory holds is reused. If pages cannot be read, returns them; the caller then calls
    /// again.
    mutating func readNext(
      _ number: Int, _ reader: RepositoryReader
    ) throws(StoreError) -> UnreadableNames.Pages? {
      var lost: UnreadableNames.Pages?
      while directories[number].isBetweenPages, let digest = directories[number].nextPage() {
        if common?.contains(digest) == true {
          // A shared page is not lost.
          if lost != nil { return lost }
          directories[number].skipPage()
        } else if let other = readers[digest], directories[other].loadedPage == digest {
          directories[number].sharePage(directories[other])
        } else {
          // Distinct directories of one page have no page in common.
          if directories[number].hasTable { readers[digest] = number }
          try directories[number].readPage(reader, &lost)
        }
      }
      return lost
    }

    /// Returns the smallest next name with all entries of that name, or nil at the end.
    mutating func next() -> Names? {
      if directories.count == 1 { return nextOfOne() }
      var least = merged.name
      for number in separate {
        guard let name = directories[number].name else { continue }
        if let before = least, !(name < before) { continue }
        least = name
      }
      guard let least else { return nil }
      last = least
      var found = merged.remove(least) ?? Names(name: least)
      for number in separate {
        if directories[number].name == least {
          if let entry = directories[number].removeFirst() { found.add(entry, of: number) }
        } else if directories[number].mayHave(least, besides: common) {
          found.unknown += directories[number].trees
        }
      }
      found.finish(directories, all: trees)
      return found
    }

    /// Returns the next entry of the only directory: by far the most frequent case, in which no
    /// comparison is needed.
    private mutating func nextOfOne() -> Names? {
      guard let entry = directories[0].removeFirst() else { return nil }
      last = entry.name
      return Names(entry, of: directories[0].trees)
    }
  }

  /// One of the distinct directories at a path, with the read position.
  struct Directory {
    let tree: TreeReference
    /// The trees that have the directory at the path.
    let trees: [Int]
    private var directory: RepositoryReader.OpenDirectory?
    private var page = 0
    private var entry = 0
    private var loaded: (entries: [TreeEntry], size: Int)?
    private var isAtEnd = false
    private var isDamaged = false
    /// The first lost page skipped since the last entry, whose names the other directories may
    /// still reach; nil if none was lost.
    private var lostFrom: Int?

    init(tree: TreeReference, trees: [Int]) {
      self.tree = tree
      self.trees = trees
    }

    /// Returns the distinct directories, each with all trees that have it.
    static func distinct(_ all: [(tree: TreeReference, trees: [Int])]) -> [Directory] {
      var indexes: [TreeReference: Int] = [:]
      var distinct: [(tree: TreeReference, trees: [Int])] = []
      for one in all {
        if let index = indexes[one.tree] {
          distinct[index].trees += one.trees
        } else {
          indexes[one.tree] = distinct.count
          distinct.append(one)
        }
      }
      return distinct.map { Directory(tree: $0.tree, trees: $0.trees.sorted()) }
    }

    var size: Int { (directory?.size ?? 0) + (loaded?.size ?? 0) }

    mutating func forget() { (directory, loaded) = (nil, nil) }

    /// Stops reading the directory after damage.
    mutating func abandon() {
      (isAtEnd, isDamaged) = (true, true)
      forget()
    }

    /// Opens the directory, even one that was read to its end, because its pages are compared with
    /// those of the others.
    mutating func open(_ reader: RepositoryReader) throws(StoreError) {
      if directory == nil, !isDamaged { directory = try reader.openDirectory(tree) }
    }

    /// The digests of the pages; of the directory itself if it has only one.
    var pages: [Digest] {
      switch directory?.blob {
      case .table(let pages): pages.map(\.digest)
      case .page: [tree.digest]
      case nil: []
      }
    }

    private var pageDigest: Digest? { digest(ofPage: page) }

    private func digest(ofPage number: Int) -> Digest? {
      switch directory?.blob {
      case .table(let pages): number < pages.count ? pages[number].digest : nil
      case .page: number == 0 ? tree.digest : nil
      case nil: nil
      }
    }

    /// Whether the directory has a table of pages.
    var hasTable: Bool { if case .table = directory?.blob { true } else { false } }

    /// The digest of the current page, or nil if none is held.
    var loadedPage: Digest? { loaded == nil ? nil : pageDigest }

    /// Whether there is no current entry but may be a next one.
    var isBetweenPages: Bool { !isAtEnd && name == nil }

    /// Releases a page that was read to its end and returns the digest of the next one, or nil at
    /// the end of the directory.
    mutating func nextPage() -> Digest? {
      if loaded != nil { skipPage() }
      if let digest = pageDigest { return digest }
      isAtEnd = true
      return nil
    }

    mutating func skipPage() {
      page += 1
      entry = 0
      loaded = nil
    }

    /// Shares the page of another directory, which counts its size.
    mutating func sharePage(_ other: Directory) { loaded = other.loaded.map { ($0.entries, 0) } }

    /// Opens the directory like `open(_:)`, but returns the only page of one without a table, which
    /// is not held.
    mutating func openUnlessOnePage(
      _ reader: RepositoryReader
    ) throws(StoreError) -> RepositoryReader.TreeBytes? {
      guard directory == nil, !isDamaged else { return nil }
      let bytes = try reader.treeBytes(tree)
      guard bytes.isTable else { return bytes }
      directory = try bytes.directory()
      return nil
    }

    /// Reads the next page, or skips it if it is damaged.
    mutating func readPage(
      _ reader: RepositoryReader, _ lost: inout UnreadableNames.Pages?
    ) throws(StoreError) {
      guard let directory else { return }
      do throws(StoreError) {
        loaded = try reader.page(page, of: directory)
      } catch {
        guard error.kind == .damaged, let names = directory.names(onPage: page) else { throw error }
        if lost == nil {
          lost = UnreadableNames.Pages(names, error)
        } else {
          lost?.add(names, error)
        }
        lostFrom = lostFrom ?? page
        skipPage()
      }
    }

    /// Whether a name that another directory has reached may be on an unreadable page of this one.
    /// Shared pages do not count.
    func mayHave(_ name: ByteString, besides common: Set<Digest>?) -> Bool {
      if isDamaged { return true }
      guard let lostFrom, let number = directory?.page(for: name), number >= lostFrom,
        number < page,
        let digest = digest(ofPage: number)
      else { return false }
      return common?.contains(digest) != true
    }

    /// The name of the current entry, or nil if there is none.
    var name: ByteString? {
      guard let loaded, entry < loaded.entries.count else { return nil }
      return loaded.entries[entry].name
    }

    mutating func removeFirst() -> TreeEntry? {
      guard let loaded, entry < loaded.entries.count else { return nil }
      entry += 1
      // The entry follows the lost pages, so the other directories are past them as well.
      lostFrom = nil
      return loaded.entries[entry - 1]
    }
  }
}
