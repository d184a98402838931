internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// The decoded directories of a mount, of at most 32 MiB.
final class TreeCache: Sendable {
  private let reader: SharedReader
  private let turn: ReceivingTurn
  private let directories: Mutex<CostBoundedCache<TreeReference, SharedReader.DirectoryPages>>
  private let pages: Mutex<CostBoundedCache<PageKey, [TreeEntry]>>
  /// The numbers of subdirectories, which are needed whenever a directory is listed in its parent.
  private let subdirectories = Mutex(
    CostBoundedCache<TreeReference, UInt32>(capacity: 64 << 10))

  private struct PageKey: Hashable {
    let tree: TreeReference
    let number: Int
  }

  /// - Parameter capacity: the maximum size of decoded directories, in bytes.
  init(_ reader: SharedReader, _ turn: ReceivingTurn, capacity: Int = 32 << 20) {
    (self.reader, self.turn) = (reader, turn)
    directories = Mutex(CostBoundedCache(capacity: capacity / 2))
    pages = Mutex(CostBoundedCache(capacity: capacity / 2))
  }

  /// Returns a directory: its only page, or the table of its pages.
  func directory(_ tree: TreeReference) throws(StoreError) -> SharedReader.DirectoryPages {
    if let held = directories.withLock({ $0.value(tree) }) { return held }
    turn.pass()
    let pages = try reader.directory(tree)
    let cost = Self.cost(of: pages.onlyPage ?? [], encoded: pages.size)
    directories.withLock { $0.insert(pages, for: tree, cost: cost) }
    return pages
  }

  /// Returns the entries of a page of a directory.
  func page(_ number: Int, of tree: TreeReference) throws(StoreError) -> [TreeEntry] {
    let directory = try directory(tree)
    if let only = directory.onlyPage { return only }
    let key = PageKey(tree: tree, number: number)
    if let held = pages.withLock({ $0.value(key) }) { return held }
    turn.pass()
    let page = try reader.page(number, of: directory)
    let cost = Self.cost(of: page.entries, encoded: page.size)
    pages.withLock { $0.insert(page.entries, for: key, cost: cost) }
    return page.entries
  }

  /// The size of decoded entries in memory: the entries, their encoded content, and about two heap
  /// blocks for each.
  private static func cost(of entries: [TreeEntry], encoded: Int) -> Int {
    entries.count * (MemoryLayout<TreeEntry>.stride + 128) + encoded
  }

  /// Returns the number of directories in a directory.
  func subdirectories(of tree: TreeReference) throws(StoreError) -> UInt32 {
    if let count = subdirectories.withLock({ $0.value(tree) }) { return count }
    var count: UInt32 = 0
    for number in 0..<(try directory(tree).count) {
      for entry in try page(number, of: tree) {
        if entry.isDirectory { count += 1 }
      }
    }
    let found = count
    subdirectories.withLock { $0.insert(found, for: tree, cost: 1) }
    return found
  }

  /// Returns the position of a name in a directory, or nil if there is none.
  func find(
    _ name: ByteString, in tree: TreeReference
  ) throws(StoreError) -> (page: Int, position: Int, entry: TreeEntry)? {
    guard let number = try directory(tree).page(for: name) else { return nil }
    let entries = try page(number, of: tree)
    var range = 0..<entries.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      let isBefore = entries[middle].name < name
      range = isBefore ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    let position = range.lowerBound
    guard position < entries.count, entries[position].name == name else { return nil }
    return (number, position, entries[position])
  }
}
