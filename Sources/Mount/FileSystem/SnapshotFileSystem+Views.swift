internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension SnapshotFileSystem {
  /// Returns the key of a view: the tree at a logical path of a snapshot.
  static func key(of head: SnapshotHead, at path: ByteString) -> NodeKey {
    NodeKey(path.isEmpty ? "snapshot" : "part", head.id.bytes + path.bytes)
  }

  /// Returns the view of the directory at a logical path of a snapshot, or nil if there is none.
  static func view(
    of head: SnapshotHead, at path: ByteString, key: NodeKey, _ trees: TreeCache
  ) throws(StoreError) -> SnapshotView? {
    var tree = head.tree
    var last: TreeEntry?
    for name in path.components {
      guard let entry = try trees.find(name, in: tree)?.entry,
        case .directory(let below) = entry.node
      else { return nil }
      (tree, last) = (below, entry)
    }
    return SnapshotView(key: key, of: head, tree: tree, entry: last)
  }

  /// Returns the view of an app's part of a snapshot; nil if it has none, or if it cannot be read,
  /// which is reported.
  func view(of app: ByteString, in head: SnapshotHead) -> SnapshotView? {
    let path = ByteString("apps").appending(app)
    let key = Self.key(of: head, at: path)
    do throws(StoreError) {
      return try Self.view(of: head, at: path, key: key, trees)
    } catch {
      damage.add("\(path) (\(head.id.hex.prefix(8))): \(error)")
      return nil
    }
  }

  /// Returns the path of a node in the mount, for messages: built from the nodes above it that the
  /// kernel knows.
  func path(of node: MountNode) -> ByteString {
    var names: [ByteString] = []
    var node = node
    while node.number != NodeKey.rootNumber, names.count < FormatLimit.depth {
      guard let name = name(of: node) else { break }
      names.append(name)
      guard let above = nodes.node(node.parent) else { break }
      node = above
    }
    return ByteString(joining: names.reversed())
  }

  private func name(of node: MountNode) -> ByteString? {
    switch node.origin {
    case .fixed(.root): return nil
    case .fixed(.snapshots): return "snapshots"
    case .fixed(.apps): return "apps"
    case .fixed(.app(let name)): return name
    case .latest: return "latest"
    case .viewRoot(let view):
      return list?.current().snapshots.first { $0.head.id == view.snapshot }?.name
        ?? ByteString(String(view.snapshot.hex.prefix(8)))
    case .entry(let pointer, _): return try? entry(pointer).name
    }
  }

  /// Reports damage that concerns a node and returns the error for its readers.
  func fault(_ error: StoreError, at node: MountNode) -> FileSystemError {
    fault(error, at: path(of: node))
  }

  func fault(_ error: StoreError, at path: ByteString) -> FileSystemError {
    damage.add(
      "\(path.isEmpty ? "." : path): \(error.reason)", isDamage: error.kind == .damaged)
    return .io
  }
}
