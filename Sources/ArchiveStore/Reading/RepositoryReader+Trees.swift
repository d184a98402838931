internal import Codecs
public import SystemIO

extension RepositoryReader {
  /// Passes the entries of a directory one by one, page by page, except those on damaged pages.
  /// Returns the error of such pages, or nil if there is none; one of damage rather than of pages
  /// that this user may not read.
  func forEachEntry(
    of tree: TreeReference, _ body: (TreeEntry) throws -> Void
  ) throws -> StoreError? {
    let directory = try openDirectory(tree)
    var (number, failure) = (0, StoreError?.none)
    while true {
      let part = try readNext(&number, in: directory)
      if let error = part.lost?.error, failure?.isRefused ?? true { failure = error }
      guard let page = part.page else { return failure }
      for entry in page.entries { try body(entry) }
      number += 1
    }
  }

  /// Returns the entry at a path of names separated by slashes, or nil if there is none. Of each
  /// directory only the page that would hold the name is read, and only that entry is decoded.
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
    var page = try treeBytes(tree)
    if page.isTable {
      let directory = try page.directory()
      guard let number = directory.page(for: name), case .table(let pages) = directory.blob else {
        return nil
      }
      page = try treeBytes(TreeReference(pages[number].digest))
    }
    return try page.entry(named: name)
  }

  /// The verified bytes of a tree blob.
  struct TreeBytes {
    let tree: TreeReference
    /// A decoded frame, and the range of the blob in it.
    let frame: [UInt8]
    let range: Range<Int>

    /// The name of the blob in messages.
    var object: String { "\(BlobID(kind: .tree, digest: tree.digest))" }

    var isTable: Bool { TreeCoding.isTable(frame, range) }

    /// Decodes the blob.
    func directory() throws(StoreError) -> OpenDirectory {
      let blob = try TreeCoding.decode(frame, range: range, object: object)
      return OpenDirectory(reference: tree, blob: blob, size: range.count)
    }

    /// Returns the entry of a name on this page, or nil if there is none.
    func entry(named name: ByteString) throws(StoreError) -> TreeEntry? {
      try TreeCoding.entry(named: name, in: frame, range: range, object: object)
    }
  }

  /// Reads and verifies a tree blob.
  func treeBytes(_ tree: TreeReference) throws(StoreError) -> TreeBytes {
    let (frame, range) = try find(BlobID(kind: .tree, digest: tree.digest))
    return TreeBytes(tree: tree, frame: frame, range: range)
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
    try treeBytes(tree).directory()
  }

  /// Returns the entries of a page and its size in bytes. Checks that the entries lie after the
  /// previous page and end with the name in the table.
  func page(
    _ number: Int, of directory: OpenDirectory
  ) throws(StoreError) -> (entries: [TreeEntry], size: Int) {
    try directory.page(number) { tree throws(StoreError) in try openDirectory(tree) }
  }

  /// Returns the number of paths below a tree. Each distinct tree is read once, and takes about 50
  /// bytes of memory, however many paths lead to it. A small repository that names more paths than
  /// any disk can hold is therefore counted without visiting them.
  ///
  /// Damaged trees and pages, and trees beyond the maximum depth, count as empty.
  public func countPaths(below root: TreeReference) throws(StoreError) -> UInt64 {
    var counts: [TreeReference: UInt64] = [:]
    var open = [try countedDirectory(root)]
    while var level = open.popLast() {
      guard let next = level.below.popLast() else {
        counts[level.tree] = level.paths
        continue
      }
      if let count = counts[next] {
        level.paths.addClamping(count)
        open.append(level)
      } else {
        level.below.append(next)
        open.append(level)
        if open.count < FormatLimit.depth {
          open.append(try countedDirectory(next))
        } else {
          counts[next] = 0
        }
      }
    }
    return counts[root] ?? 0
  }

  /// A directory whose own entries are counted; the trees in `below` are not counted yet.
  private struct CountedDirectory {
    let tree: TreeReference
    var below: [TreeReference] = []
    var paths: UInt64 = 0
  }

  private func countedDirectory(_ tree: TreeReference) throws(StoreError) -> CountedDirectory {
    var level = CountedDirectory(tree: tree)
    do {
      let directory = try openDirectory(tree)
      var number = 0
      while let page = try readNext(&number, in: directory).page {
        for entry in page.entries {
          level.paths.addClamping(1)
          if case .directory(let below) = entry.node { level.below.append(below) }
        }
        number += 1
      }
    } catch {
      guard error.kind == .damaged else { throw error }
    }
    return level
  }

  /// The next part of a directory.
  struct DirectoryPart {
    /// The unreadable pages.
    var lost: UnreadableNames.Pages?
    /// The page after them with its size in bytes, or nil at the end of the directory.
    var page: (entries: [TreeEntry], size: Int)?
  }

  /// Reads a page, or the next readable one, and sets `number` to it. A damaged page loses only its
  /// own names, because the page table still locates the other pages.
  func readNext(_ number: inout Int, in directory: OpenDirectory) throws(StoreError)
    -> DirectoryPart
  {
    var part = DirectoryPart()
    while number < directory.pages {
      do throws(StoreError) {
        part.page = try page(number, of: directory)
        return part
      } catch {
        guard error.kind == .damaged, let names = directory.names(onPage: number) else {
          throw error
        }
        if part.lost == nil {
          part.lost = UnreadableNames.Pages(names, error)
        } else {
          part.lost?.add(names, error)
        }
      }
      number += 1
    }
    return part
  }
}

extension RepositoryReader.OpenDirectory {
  /// Returns the entries of a page and its size in bytes, or 0 for the only page. `open` reads the
  /// page's blob.
  func page(
    _ number: Int, open: (TreeReference) throws(StoreError) -> RepositoryReader.OpenDirectory
  ) throws(StoreError) -> (entries: [TreeEntry], size: Int) {
    let pages: [TreeBlob.Page]
    switch blob {
    case .page(let entries): return (entries, 0)
    case .table(let table): pages = table
    }
    let opened = try open(TreeReference(pages[number].digest))
    guard case .page(let entries) = opened.blob, let first = entries.first?.name,
      entries.last?.name == pages[number].last, number == 0 || pages[number - 1].last < first
    else {
      throw .damaged(
        "tree blob \(pages[number].digest.hex)", "it is not the page that its directory refers to")
    }
    return (entries, opened.size)
  }

  /// Returns the range of the names on a page according to the page table, or nil if there is no
  /// table.
  func names(onPage number: Int) -> UnreadableNames? {
    guard case .table(let pages) = blob, number < pages.count else { return nil }
    return UnreadableNames(
      after: number > 0 ? pages[number - 1].last : nil, last: pages[number].last)
  }
}
