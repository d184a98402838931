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

    /// - Parameter alike: the number of trees if content that all share is skipped, otherwise 0.
    init(path: ByteString, directories: [Directory], alike: Int) {
      self.path = path
      self.directories = directories
      self.alike = alike
    }

    var size: Int { directories.reduce(0) { $0 + $1.size } }

    mutating func forget() {
      common = nil
      readers = [:]
      for number in directories.indices { directories[number].forget() }
    }

    mutating func open(_ number: Int, _ reader: RepositoryReader) throws(StoreError) {
      try directories[number].open(reader)
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
        } else if let other = readers[digest], directories[other].heldPage == digest {
          directories[number].hold(directories[other])
        } else {
          // Distinct directories of one page have no page in common.
          if directories[number].hasTable { readers[digest] = number }
          try directories[number].readPage(reader, &lost)
        }
      }
      return lost
    }

    /// Returns the smallest next name with all entries of that name, or nil at the end.
    mutating func takeNext() -> Names? {
      var least: ByteString?
      for directory in directories {
        guard let name = directory.name else { continue }
        if let before = least, !(name < before) { continue }
        least = name
      }
      guard let least else { return nil }
      var found = Names(name: least)
      for number in directories.indices {
        if directories[number].name == least {
          if let entry = directories[number].take() {
            found.add(entry, trees: directories[number].trees)
          }
        } else if directories[number].mayHave(least, besides: common) {
          found.unknown += directories[number].trees
        }
      }
      found.finish()
      return found
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
    private var held: (entries: [TreeEntry], size: Int)?
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
      var places: [TreeReference: Int] = [:]
      var distinct: [(tree: TreeReference, trees: [Int])] = []
      for one in all {
        if let place = places[one.tree] {
          distinct[place].trees += one.trees
        } else {
          places[one.tree] = distinct.count
          distinct.append(one)
        }
      }
      return distinct.map { Directory(tree: $0.tree, trees: $0.trees.sorted()) }
    }

    var size: Int { (directory?.size ?? 0) + (held?.size ?? 0) }

    mutating func forget() { (directory, held) = (nil, nil) }

    /// Stops reading the directory after damage.
    mutating func abandon() {
      (isAtEnd, isDamaged) = (true, true)
      forget()
    }

    /// Opens the directory. One that was read to its end is opened as well, because its pages are
    /// compared with those of the others.
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
    var heldPage: Digest? { held == nil ? nil : pageDigest }

    /// Whether there is no current entry but may be a next one.
    var isBetweenPages: Bool { !isAtEnd && name == nil }

    /// Releases a page that was read to its end and returns the digest of the next one, or nil at
    /// the end of the directory.
    mutating func nextPage() -> Digest? {
      if held != nil { skipPage() }
      if let digest = pageDigest { return digest }
      isAtEnd = true
      return nil
    }

    mutating func skipPage() {
      page += 1
      entry = 0
      held = nil
    }

    mutating func hold(_ other: Directory) { held = other.held }

    /// Reads the next page, or skips it if it is damaged.
    mutating func readPage(
      _ reader: RepositoryReader, _ lost: inout UnreadableNames.Pages?
    ) throws(StoreError) {
      guard let directory else { return }
      do throws(StoreError) {
        held = try reader.page(page, of: directory)
      } catch {
        guard error.kind == .damaged, let names = directory.names(onPage: page) else { throw error }
        if lost == nil { lost = UnreadableNames.Pages(names, error) } else { lost?.add(names) }
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
      guard let held, entry < held.entries.count else { return nil }
      return held.entries[entry].name
    }

    mutating func take() -> TreeEntry? {
      guard let held, entry < held.entries.count else { return nil }
      entry += 1
      // The entry follows the lost pages, so the other directories are past them as well.
      lostFrom = nil
      return held.entries[entry - 1]
    }
  }

  /// The entries that several trees have under one name.
  struct Names {
    let name: ByteString
    private(set) var entries: [Entry] = []
    /// The trees that may also have the name.
    var unknown: [Int] = []
    /// The position of each entry, of many.
    private var places: [TreeEntry: Int] = [:]
    /// The entry of the last directory: that of the next one is often equal.
    private var last = 0
    /// The entries of several directories.
    private var merged: Set<Int> = []

    /// The number of entries from which they are found by their hashes.
    private static let manyEntries = 8

    init(name: ByteString) { self.name = name }

    /// Adds the entry of a directory. `finish` must be called after the last one.
    mutating func add(_ entry: TreeEntry, trees: [Int]) {
      if let same = place(of: entry) {
        last = same
        entries[same].trees += trees
        merged.insert(same)
        return
      }
      last = entries.count
      entries.append(Entry(entry: entry, trees: trees))
      if entries.count == Self.manyEntries {
        for (place, found) in entries.enumerated() { places[found.entry] = place }
      } else if entries.count > Self.manyEntries {
        places[entry] = last
      }
    }

    private func place(of entry: TreeEntry) -> Int? {
      if last < entries.count, entries[last].entry == entry { return last }
      if entries.count >= Self.manyEntries { return places[entry] }
      return entries.firstIndex { $0.entry == entry }
    }

    /// Orders the trees of each entry.
    mutating func finish() {
      for number in merged { entries[number].trees.sort() }
      places = [:]
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
