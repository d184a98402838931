internal import ArchiveStore
internal import SystemIO

/// The directories of a snapshot above its containers: `apps`, `apps/<id>`, `apps/<id>/extensions`,
/// …
///
/// They exist on no device, so their metadata is the same in every snapshot: mode 0755, owner 0,
/// time 0.
struct LogicalTree {
  private enum Node {
    case container(TreeEntry)
    case folder([ByteString: Node])
  }

  private var root: [ByteString: Node] = [:]

  /// Adds a container's root at its logical path.
  mutating func place(_ entry: TreeEntry, at path: ByteString) {
    Self.place(entry, path.components[...], in: &root)
  }

  /// Stores the directories; returns the tree of the snapshot's root.
  func store(_ session: WritingSession) throws -> TreeReference {
    try Self.store(root, session)
  }

  private static func place(
    _ entry: TreeEntry, _ path: ArraySlice<ByteString>, in directory: inout [ByteString: Node]
  ) {
    guard let name = path.first else { return }
    if path.count == 1 {
      directory[name] = .container(entry.named(name))
      return
    }
    var inner: [ByteString: Node] = [:]
    if case .folder(let existing) = directory[name] { inner = existing }
    place(entry, path.dropFirst(), in: &inner)
    directory[name] = .folder(inner)
  }

  private static func store(
    _ directory: [ByteString: Node], _ session: WritingSession
  ) throws -> TreeReference {
    let entries = try directory.map { name, node in
      switch node {
      case .container(let entry): return entry
      case .folder(let inner):
        return TreeEntry(
          name: name, node: .directory(try store(inner, session)), permissions: 0o755)
      }
    }
    return try session.storeTree(entries)
  }
}
