internal import Codecs
package import SystemIO

extension RepositoryReader {
  /// Returns the entries of a directory, sorted by the bytes of their names.
  package func entries(of tree: TreeReference) throws(StoreError) -> [TreeEntry] {
    let directory = try openDirectory(tree)
    var entries: [TreeEntry] = []
    for number in 0..<directory.pages { entries += try page(number, of: directory).entries }
    return entries
  }

  /// Passes the entries of a directory one by one, page by page, except those on damaged pages.
  /// Returns false if there are such pages.
  func forEachEntry(of tree: TreeReference, _ body: (TreeEntry) throws -> Void) throws -> Bool {
    let directory = try openDirectory(tree)
    var (number, isWhole) = (0, true)
    while true {
      let part = try readNext(&number, in: directory)
      if part.lost != nil { isWhole = false }
      guard let page = part.page else { return isWhole }
      for entry in page.entries { try body(entry) }
      number += 1
    }
  }

  /// Returns the entry at a path of names separated by slashes, or nil if there is none. Of each
  /// directory only the page that would hold the name is read.
  package func entry(at path: ByteString, in tree: TreeReference) throws(StoreError) -> TreeEntry? {
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

  /// A directory whose blob was read: the entries of its only page, or the table of its pages.
  struct OpenDirectory {
    let reference: TreeReference
    let blob: TreeBlob
    /// The size of the blob in bytes, for memory limits.
    let size: Int

    var pages: Int {
      switch blob {
      case .page: 1
      case .table(let pages): pages.count
      }
    }

    /// Returns the page that would hold a name, or nil if the name is after the last page.
    func page(for name: ByteString) -> Int? {
      switch blob {
      case .page: 0
      case .table(let pages): Self.page(for: name, of: pages)
      }
    }

    private static func page(for name: ByteString, of pages: [TreeBlob.Page]) -> Int? {
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

  /// Returns the entries of a page and its size in bytes. Checks that the entries lie after the
  /// previous page and end with the name in the table.
  func page(
    _ number: Int, of directory: OpenDirectory
  ) throws(StoreError) -> (entries: [TreeEntry], size: Int) {
    let pages: [TreeBlob.Page]
    switch directory.blob {
    case .page(let entries): return (entries, 0)
    case .table(let table): pages = table
    }
    let opened = try openDirectory(TreeReference(pages[number].digest))
    guard case .page(let entries) = opened.blob, let first = entries.first?.name,
      entries.last?.name == pages[number].last, number == 0 || pages[number - 1].last < first
    else {
      throw .damaged(
        "tree blob \(pages[number].digest.hex)", "it is not the page that its directory refers to")
    }
    return (entries, opened.size)
  }
}
