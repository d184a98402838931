internal import ArchiveStore
internal import SystemIO

/// Consecutive entries of a page of a directory, which are put ahead together.
struct DirectoryPart: Hashable, Sendable {
  /// The node of the directory.
  let directory: UInt64
  let page: UInt32
  /// The number of the part on the page.
  let number: UInt32

  /// The maximum number of entries of a part.
  static let length = 128

  /// The positions of its entries on a page of `count` entries.
  func positions(of count: Int) -> Range<Int> {
    let start = min(count, Int(number) * Self.length)
    return start..<min(count, start + Self.length)
  }
}

extension SnapshotFileSystem {
  /// A small file that the kernel knows and whose content is in a held frame.
  struct HeldFile: Sendable {
    let number: UInt64
    let content: SharedReader.Slice
  }

  /// The maximum size of a small file, in bytes.
  static let smallSize: UInt64 = 128 << 10

  /// Returns the size of a file, and the part of its directory that contains it; nil for other nodes.
  func place(of number: UInt64) -> (size: UInt64, part: DirectoryPart)? {
    guard let node = nodes.node(number), case .entry(let pointer, nil) = node.origin,
      case .file(let content)? = try? entry(pointer).node
    else { return nil }
    let part = pointer.position / UInt32(DirectoryPart.length)
    return (
      content.size, DirectoryPart(directory: node.parent, page: pointer.page, number: part)
    )
  }

  /// Returns the small files of a part of a directory that the kernel knows and whose content is
  /// held, in the order of their numbers: programs that copy trees read them in that order.
  ///
  /// Reads nothing, and no damage is reported: whoever reads the file meets it.
  func heldFiles(in part: DirectoryPart) -> [HeldFile] {
    guard let parent = nodes.node(part.directory), let (tree, view) = stored(parent),
      let entries = try? trees.page(Int(part.page), of: tree)
    else { return [] }
    let files = part.positions(of: entries.count).compactMap { position -> HeldFile? in
      let entry = entries[position]
      guard let content = held(entry) else { return nil }
      let pointer = EntryPointer(
        view: view, directory: tree, page: part.page, position: UInt32(position))
      let key = found(entry, at: pointer, in: parent.key).key
      let number = nodes.number(of: key)
      return nodes.node(number) == nil ? nil : HeldFile(number: number, content: content)
    }
    return files.sorted { $0.number < $1.number }
  }

  /// The whole content of a small file of one piece.
  private func held(_ entry: TreeEntry) -> SharedReader.Slice? {
    guard case .file(let content) = entry.node, content.size <= Self.smallSize,
      content.pieces.count == 1, case .blob(let digest, content.size)? = content.pieces.first
    else { return nil }
    return reader.heldData(digest, length: content.size)
  }

  /// Returns a range of a file that has no holes in it; nil if it has, or if some of it is damaged,
  /// which is not reported.
  func partsToPut(_ number: UInt64, from offset: UInt64, count: Int) -> [FilePart]? {
    guard let node = nodes.node(number), let content = try? content(of: node),
      let parts = try? parts(of: content, from: offset, count: count)
    else { return nil }
    let isWhole = parts.reduce(0) { $0 + $1.count } == count
    let hasHole = parts.contains { if case .zeros = $0 { true } else { false } }
    return isWhole && !hasHole ? parts : nil
  }

  private func stored(_ node: Node) -> (TreeReference, SnapshotView)? {
    switch node.origin {
    case .viewRoot(let view): (view.tree, view)
    case .entry(let pointer, let tree?): (tree, pointer.view)
    case .fixed, .latest, .entry: nil
    }
  }

  /// Returns the parts of an open directory all of whose entries are before an offset, except those
  /// before another offset. Both are 0 or the `next` of an entry.
  func parts(of handle: UInt64, from start: Int64, to end: Int64) -> [DirectoryPart] {
    guard let open = try? self.handle(handle), case .stored(let tree, _, _) = open.listing else {
      return []
    }
    let (first, last) = (Self.position(start), Self.position(end))
    guard let count = try? trees.page(last.page, of: tree).count else { return [] }
    // A page that ended in an earlier reply is not looked at again.
    let begin = first.page == last.page ? first.position / DirectoryPart.length : 0
    let whole = last.position == count ? count + DirectoryPart.length - 1 : last.position
    return (begin..<max(begin, whole / DirectoryPart.length)).map {
      DirectoryPart(
        directory: open.node.number, page: UInt32(last.page), number: UInt32($0))
    }
  }
}
