internal import Codecs
public import SystemIO

extension RepositoryReader {
  /// Gives the entries of a directory, sorted by the bytes of their names.
  public func entries(of tree: TreeReference) throws(StoreError) -> [TreeEntry] {
    let directory = try openDirectory(tree)
    var entries: [TreeEntry] = []
    for number in 0..<directory.pages { entries += try page(number, of: directory).entries }
    return entries
  }

  /// Gives the entries of a directory one by one, page by page, but for those on pages that are damaged;
  /// false where there are such pages.
  func forEachEntry(of tree: TreeReference, _ body: (TreeEntry) throws -> Void) throws -> Bool {
    let directory = try openDirectory(tree)
    var (number, isWhole) = (0, true)
    while true {
      let part = try readOn(&number, in: directory)
      if part.lost != nil { isWhole = false }
      guard let page = part.page else { return isWhole }
      for entry in page.entries { try body(entry) }
      number += 1
    }
  }

  /// Finds what a path of names and slashes leads to; nothing when it leads nowhere. Of a directory only
  /// the page is read that the name would be on.
  public func entry(at path: ByteString, in tree: TreeReference) throws(StoreError) -> TreeEntry? {
    var tree = tree
    var found: TreeEntry?
    for name in path.components {
      if let above = found {
        guard case .directory(let next) = above.node else { return nil }
        tree = next
      }
      guard let entry = try entry(named: name, in: tree) else { return nil }
      found = entry
    }
    return found
  }

  private func entry(
    named name: ByteString, in tree: TreeReference
  ) throws(StoreError) -> TreeEntry? {
    let directory = try openDirectory(tree)
    guard let number = directory.page(for: name) else { return nil }
    return try page(number, of: directory).entries.first { $0.name == name }
  }

  /// A directory whose blob is read: the entries of its only page, or the table of its pages.
  struct OpenDirectory {
    let reference: TreeReference
    let blob: TreeBlob
    /// Bytes of the blob, for who holds several directories.
    let size: Int

    var pages: Int {
      switch blob {
      case .page: 1
      case .table(let pages): pages.count
      }
    }

    /// The page that a name would be on.
    func page(for name: ByteString) -> Int? {
      switch blob {
      case .page: 0
      case .table(let pages): Self.page(for: name, of: pages)
      }
    }

    private static func page(for name: ByteString, of pages: [TreePage]) -> Int? {
      var range = 0..<pages.count
      while !range.isEmpty {
        let middle = (range.lowerBound + range.upperBound) / 2
        let isBefore = pages[middle].last < name
        range = isBefore ? middle + 1..<range.upperBound : range.lowerBound..<middle
      }
      return range.lowerBound < pages.count ? range.lowerBound : nil
    }
  }

  func openDirectory(_ tree: TreeReference) throws(StoreError) -> OpenDirectory {
    let id = BlobID(kind: .tree, digest: tree.digest)
    let (frame, range) = try find(id)
    let blob = try TreeCoding.decode(frame, range: range, object: "\(id)")
    return OpenDirectory(reference: tree, blob: blob, size: range.count)
  }

  /// The entries of a page, which lie between the page before and the name that the table has,
  /// and how many bytes it takes.
  func page(
    _ number: Int, of directory: OpenDirectory
  ) throws(StoreError) -> (entries: [TreeEntry], size: Int) {
    let pages: [TreePage]
    switch directory.blob {
    case .page(let entries): return (entries, 0)
    case .table(let table): pages = table
    }
    let opened = try openDirectory(TreeReference(pages[number].digest))
    guard case .page(let entries) = opened.blob, let first = entries.first?.name,
      entries.last?.name == pages[number].last, number == 0 || pages[number - 1].last < first
    else {
      throw .damaged(
        "tree blob \(pages[number].digest.hex)", "it is not the page that its directory names")
    }
    return (entries, opened.size)
  }
}
