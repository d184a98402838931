internal import ArchiveStore
internal import Synchronization
package import SystemIO

/// An open directory. Its content stays the same until it is closed.
final class DirectoryHandle: Sendable {
  enum Listing: Sendable {
    case fixed([SnapshotFileSystem.Found])
    /// The number of pages of a stored directory.
    case stored(TreeReference, SnapshotView, pages: Int)
  }

  let node: MountNode
  let listing: Listing
  /// Whether a page could not be read.
  let hasLost = Atomic<Bool>(false)
  /// The offset before which the kernel was known to have all entries.
  let passed = Atomic<Int64>(0)

  init(_ node: MountNode, _ listing: Listing) { (self.node, self.listing) = (node, listing) }
}

/// An entry of an open directory.
package struct DirectoryItem {
  package let name: ByteString
  package let kind: FileKind
  /// The inode number.
  package let number: UInt64
  /// The offset at which reading continues after it.
  package let next: Int64
  /// The entry, except for `.` and `..`.
  let found: SnapshotFileSystem.Found?
}

extension SnapshotFileSystem {
  /// Opens a directory. Returns a handle for `readDirectory`, and whether its content never
  /// changes.
  ///
  /// - Throws: `notDirectory`; `io` if all of it is damaged.
  package func openDirectory(
    _ number: UInt64
  ) throws(FileSystemError) -> (handle: UInt64, isConstant: Bool) {
    let node = try node(number)
    switch node.origin {
    case .fixed(let directory):
      return (register(DirectoryHandle(node, .fixed(entries(of: directory)))), false)
    case .viewRoot(let view): return (try open(view.tree, of: view, node), true)
    case .entry(let pointer, let tree?): return (try open(tree, of: pointer.view, node), true)
    case .entry, .latest: throw .notDirectory
    }
  }

  private func open(
    _ tree: TreeReference, of view: SnapshotView, _ node: MountNode
  ) throws(FileSystemError) -> UInt64 {
    do throws(StoreError) {
      let pages = try trees.directory(tree).count
      return register(DirectoryHandle(node, .stored(tree, view, pages: pages)))
    } catch { throw fault(error, at: node) }
  }

  /// Passes the entries of an open directory from an offset on, which is 0 or the `next` of an
  /// entry, until `body` returns false. The first are `.` and `..`.
  ///
  /// Entries on a damaged page are skipped; then the end of the directory is an error.
  ///
  /// - Throws: `io` if no entry is left and some were lost.
  package func readDirectory(
    _ handle: UInt64, from offset: Int64, _ body: (DirectoryItem) -> Bool
  ) throws(FileSystemError) {
    let open = try self.handle(handle)
    let own: [(ByteString, UInt64)] = [(".", open.node.number), ("..", open.node.parent)]
    for (index, (name, number)) in own.enumerated() where Int64(index) >= offset {
      let item = DirectoryItem(
        name: name, kind: .directory, number: number, next: Int64(index) + 1, found: nil)
      guard body(item) else { return }
    }
    switch open.listing {
    case .fixed(let entries):
      for (index, found) in entries.enumerated().dropFirst(Int(clamping: max(offset, 2) - 2)) {
        guard body(item(found, next: UInt64(index) + 1)) else { return }
      }
    case .stored(let tree, let view, let pages):
      let pages = PageRange(
        tree: tree, view: view, count: pages, start: Self.position(offset))
      try readPages(pages, of: open, body)
    }
  }

  /// Returns the page and the position on it of an offset in a stored directory.
  static func position(_ offset: Int64) -> (page: Int, position: Int) {
    let place = UInt64(clamping: max(offset, 2) - 2)
    return (
      Int(clamping: place >> EntryPointer.positionBits),
      Int(place & ((1 << EntryPointer.positionBits) - 1))
    )
  }

  /// The pages of a stored directory from a page and a position on it.
  private struct PageRange {
    let tree: TreeReference
    let view: SnapshotView
    let count: Int
    let start: (page: Int, position: Int)

    func pointer(page: Int, position: Int) -> EntryPointer {
      EntryPointer(view: view, directory: tree, page: UInt32(page), position: UInt32(position))
    }
  }

  private func readPages(
    _ pages: PageRange, of open: DirectoryHandle, _ body: (DirectoryItem) -> Bool
  ) throws(FileSystemError) {
    let key = open.node.key.ofEntries()
    let first = pages.start.page
    var position = pages.start.position
    var hasPassed = false
    for number in first..<max(first, pages.count) {
      do throws(StoreError) {
        let entries = try trees.page(number, of: pages.tree)
        while position < entries.count {
          let pointer = pages.pointer(page: number, position: position)
          position += 1
          let found = found(entries[position - 1], at: pointer, in: key)
          guard body(item(found, next: pointer.ordinal + 1)) else { return }
          hasPassed = true
        }
      } catch {
        _ = fault(error, at: open.node)
        open.hasLost.store(true, ordering: .relaxed)
      }
      position = 0
    }
    if !hasPassed, open.hasLost.load(ordering: .relaxed) { throw .io }
  }

  private func item(_ found: Found, next: UInt64) -> DirectoryItem {
    DirectoryItem(
      name: found.name, kind: found.kind, number: nodes.number(of: found.key),
      next: Int64(next) + 2, found: found)
  }

  /// Makes an item of an open directory a node, counts a reference to it, and returns its
  /// attributes; nil for `.` and `..`.
  package func enter(
    _ item: DirectoryItem, of handle: UInt64
  ) throws(FileSystemError) -> NodeAttributes? {
    guard let found = item.found else { return nil }
    return enter(found, in: try self.handle(handle).node)
  }
}
