internal import Codecs
internal import SystemIO

/// The directories that several trees have at one path, read side by side.
struct JointLevel: WalkHolder {
  let path: ByteString
  var directories: [JointDirectory]
  private let alike: Int
  /// Pages that all trees have: they are passed over. Nothing until all directories are open.
  private var common: Set<Digest>?

  /// - Parameter alike: How many trees there are, if what all have alike is to be passed over.
  init(path: ByteString, directories: [JointDirectory], alike: Int) {
    self.path = path
    self.directories = directories
    self.alike = alike
  }

  var size: Int { directories.reduce(0) { $0 + $1.size } }

  mutating func forget() {
    common = nil
    for number in directories.indices { directories[number].forget() }
  }

  mutating func open(_ number: Int, _ reader: RepositoryReader) throws(StoreError) {
    try directories[number].open(reader)
  }

  /// Finds the pages that need not be read.
  mutating func findCommonPages() {
    guard common == nil else { return }
    common = []
    guard directories.reduce(0, { $0 + $1.trees.count }) == alike else { return }
    let pages = directories.map { Set($0.pages) }
    guard var all = pages.first else { return }
    for other in pages.dropFirst() { all.formIntersection(other) }
    common = all
  }

  /// Goes to the next page of a directory that has an entry, past those that all have. A page that
  /// another directory holds is shared with it. Where pages cannot be read it says which, and is to be
  /// called again.
  mutating func readOn(
    _ number: Int, _ reader: RepositoryReader
  ) throws(StoreError) -> LostPages? {
    var lost: LostPages?
    while directories[number].isBetweenPages, let digest = directories[number].nextPage() {
      if common?.contains(digest) == true {
        // What all have is not lost.
        if lost != nil { return lost }
        directories[number].passOver()
      } else if let shared = directories.first(where: { $0.heldPage == digest }) {
        directories[number].hold(shared)
      } else {
        try directories[number].readPage(reader, &lost)
      }
    }
    return lost
  }

  /// Takes the least name with all entries of that name.
  mutating func takeNext() -> JointNames? {
    var least: ByteString?
    for directory in directories {
      guard let name = directory.name else { continue }
      if let before = least, !(name < before) { continue }
      least = name
    }
    guard let least else { return nil }
    var found = JointNames(name: least, entries: [])
    for number in directories.indices {
      if directories[number].name == least {
        if let entry = directories[number].take() {
          found.add(entry, trees: directories[number].trees)
        }
      } else if directories[number].mayHave(least, besides: common) {
        found.unknown += directories[number].trees
      }
    }
    return found
  }
}

/// One of the distinct directories at a path, and the place in it.
struct JointDirectory {
  let tree: TreeReference
  /// The trees that have it there.
  let trees: [Int]
  private var directory: RepositoryReader.OpenDirectory?
  private var page = 0
  private var entry = 0
  private var held: (entries: [TreeEntry], size: Int)?
  private var isAtEnd = false
  private var isDamaged = false
  /// The first lost page of those passed over since the last entry, to whose names the others may
  /// come yet; nothing where none of them is lost.
  private var lostFrom: Int?

  init(tree: TreeReference, trees: [Int]) {
    self.tree = tree
    self.trees = trees
  }

  /// The distinct directories, each with all trees that have it.
  static func distinct(_ all: [(tree: TreeReference, trees: [Int])]) -> [JointDirectory] {
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
    return distinct.map { JointDirectory(tree: $0.tree, trees: $0.trees.sorted()) }
  }

  var size: Int { (directory?.size ?? 0) + (held?.size ?? 0) }

  mutating func forget() { (directory, held) = (nil, nil) }

  /// Gives up the rest of the directory.
  mutating func giveUp() {
    (isAtEnd, isDamaged) = (true, true)
    forget()
  }

  /// One that is read to its end is opened, too: its pages are still compared with the others'.
  mutating func open(_ reader: RepositoryReader) throws(StoreError) {
    if directory == nil, !isDamaged { directory = try reader.openDirectory(tree) }
  }

  /// The names of the pages; that of the directory itself when it has only one.
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

  /// The page in hand.
  var heldPage: Digest? { held == nil ? nil : pageDigest }

  /// Whether there is no entry in hand and may be one.
  var isBetweenPages: Bool { !isAtEnd && name == nil }

  /// Lets go of a page that was read to its end, and names the next one to read; at the end of the
  /// directory there is none.
  mutating func nextPage() -> Digest? {
    if held != nil { passOver() }
    if let digest = pageDigest { return digest }
    isAtEnd = true
    return nil
  }

  mutating func passOver() {
    page += 1
    entry = 0
    held = nil
  }

  mutating func hold(_ other: JointDirectory) { held = other.held }

  /// Reads the next page, or passes it over where it is damaged.
  mutating func readPage(
    _ reader: RepositoryReader, _ lost: inout LostPages?
  ) throws(StoreError) {
    guard let directory else { return }
    do throws(StoreError) {
      held = try reader.page(page, of: directory)
    } catch {
      guard error.kind == .damaged, let names = directory.names(onPage: page) else { throw error }
      if lost == nil { lost = LostPages(names, error) } else { lost?.add(names) }
      lostFrom = lostFrom ?? page
      passOver()
    }
  }

  /// Whether a name that another directory has come to may be among those that cannot be read here. Pages
  /// that all have were passed over as well.
  func mayHave(_ name: ByteString, besides common: Set<Digest>?) -> Bool {
    if isDamaged { return true }
    guard let lostFrom, let number = directory?.page(for: name), number >= lostFrom, number < page,
      let digest = digest(ofPage: number)
    else { return false }
    return common?.contains(digest) != true
  }

  /// The name of the entry in hand.
  var name: ByteString? {
    guard let held, entry < held.entries.count else { return nil }
    return held.entries[entry].name
  }

  mutating func take() -> TreeEntry? {
    guard let held, entry < held.entries.count else { return nil }
    entry += 1
    // It is behind them, and so are the others now.
    lostFrom = nil
    return held.entries[entry - 1]
  }
}

/// All that several trees have under one name.
struct JointNames {
  let name: ByteString
  var entries: [JointEntry]
  /// Trees that may have it, too.
  var unknown: [Int] = []

  mutating func add(_ entry: TreeEntry, trees: [Int]) {
    if let same = entries.firstIndex(where: { $0.entry == entry }) {
      entries[same] = JointEntry(entry: entry, trees: (entries[same].trees + trees).sorted())
    } else {
      entries.append(JointEntry(entry: entry, trees: trees))
    }
  }

  /// Which trees have something there.
  var trees: [Int] { entries.flatMap(\.trees).sorted() }

  /// The distinct directories among the entries.
  var directories: [JointDirectory] {
    JointDirectory.distinct(
      entries.compactMap { found in
        guard case .directory(let tree) = found.entry.node else { return nil }
        return (tree, found.trees)
      })
  }
}
