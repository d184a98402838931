internal import ArchiveStore
internal import Codecs
internal import Synchronization
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
  /// A small file of one piece that the kernel knows.
  struct SmallFile: Sendable {
    let number: UInt64
    let digest: Digest
    let size: UInt64
  }

  /// The maximum size of a small file, in bytes.
  static let smallSize: UInt64 = 128 << 10

  /// The size of a file and its location; nil for other nodes.
  func place(of number: UInt64) -> (size: UInt64, ordinal: UInt64, part: DirectoryPart)? {
    guard let node = nodes.node(number), case .entry(let pointer, nil) = node.origin,
      case .file(let content)? = try? entry(pointer).node
    else { return nil }
    return (content.size, pointer.ordinal, DirectoryPart(node.parent, of: pointer.ordinal))
  }

  /// Returns the part of its directory that contains a node; nil for nodes that are not entries.
  func part(of number: UInt64) -> DirectoryPart? {
    guard let node = nodes.node(number), case .entry(let pointer, _) = node.origin else {
      return nil
    }
    return DirectoryPart(node.parent, of: pointer.ordinal)
  }

  /// Returns the part after a part, or nil at the end of the directory.
  func part(after part: DirectoryPart) -> DirectoryPart? {
    guard let parent = nodes.node(part.directory), let (tree, _) = stored(parent),
      let count = try? trees.page(Int(part.page), of: tree).count
    else { return nil }
    if (Int(part.number) + 1) * DirectoryPart.length < count {
      return DirectoryPart(directory: part.directory, page: part.page, number: part.number + 1)
    }
    guard let pages = try? trees.directory(tree).count, Int(part.page) + 1 < pages else {
      return nil
    }
    return DirectoryPart(directory: part.directory, page: part.page + 1, number: 0)
  }

  /// Returns the small files of a part of a directory that the kernel knows, in the order of their
  /// names. No damage is reported: readers of the files encounter it.
  func smallFiles(in part: DirectoryPart) -> [SmallFile] {
    guard let parent = nodes.node(part.directory), let (tree, view) = stored(parent),
      let entries = try? trees.page(Int(part.page), of: tree)
    else { return [] }
    let key = parent.key.ofEntries()
    return part.positions(of: entries.count).compactMap { position -> SmallFile? in
      let entry = entries[position]
      guard case .file(let content) = entry.node, content.size <= Self.smallSize,
        content.pieces.count == 1, case .blob(let digest, content.size)? = content.pieces.first
      else { return nil }
      let pointer = EntryPointer(
        view: view, directory: tree, page: part.page, position: UInt32(position))
      let number = nodes.number(of: found(entry, at: pointer, in: key).key)
      guard nodes.node(number) != nil else { return nil }
      return SmallFile(number: number, digest: digest, size: content.size)
    }
  }

  /// Returns the content of a small file if its frame is held, or after decoding it. Nil if it is
  /// damaged, which is not reported.
  func content(of file: SmallFile, decodes: Bool) -> SharedReader.Slice? {
    if let held = reader.heldData(file.digest, length: file.size) { return held }
    return decodes ? try? reader.data(file.digest, length: file.size) : nil
  }

  /// Returns a range of a file that has no holes in it; nil if it has holes or if some of it is
  /// damaged, which is not reported.
  func partsToPut(_ number: UInt64, from offset: UInt64, count: Int) -> [FilePart]? {
    guard let node = nodes.node(number), let content = try? content(of: node),
      let parts = try? parts(of: content, from: offset, count: count)
    else { return nil }
    let isWhole = parts.reduce(0) { $0 + $1.count } == count
    let hasHole = parts.contains { if case .zeros = $0 { true } else { false } }
    return isWhole && !hasHole ? parts : nil
  }

  private func stored(_ node: MountNode) -> (TreeReference, SnapshotView)? {
    switch node.origin {
    case .viewRoot(let view): (view.tree, view)
    case .entry(let pointer, let tree?): (tree, pointer.view)
    case .fixed, .latest, .entry: nil
    }
  }

  /// Returns the parts of an open directory that the kernel has learned since the last call, given
  /// that it requests the entries from an offset on: it then has the earlier ones.
  func newParts(of handle: UInt64, before offset: Int64) -> [DirectoryPart] {
    guard let open = try? self.handle(handle), case .stored(let tree, _, _) = open.listing else {
      return []
    }
    let start = open.passed.exchange(offset, ordering: .relaxed)
    guard start < offset else { return [] }
    let (first, last) = (Self.position(start), Self.position(offset))
    guard let count = try? trees.page(last.page, of: tree).count else { return [] }
    // A page that ended in an earlier reply is not examined again.
    let begin = first.page == last.page ? first.position / DirectoryPart.length : 0
    let whole = last.position == count ? count + DirectoryPart.length - 1 : last.position
    return (begin..<max(begin, whole / DirectoryPart.length)).map {
      DirectoryPart(
        directory: open.node.number, page: UInt32(last.page), number: UInt32($0))
    }
  }
}
