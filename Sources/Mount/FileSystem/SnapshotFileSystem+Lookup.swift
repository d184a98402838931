internal import ArchiveStore
internal import Codecs
package import SystemIO

extension SnapshotFileSystem {
  /// An entry of a directory before it is a node: its name, its identity and its origin.
  struct Found {
    let name: ByteString
    let key: NodeKey
    let origin: MountNode.Origin
    /// The stored entry, if it is one.
    var entry: TreeEntry?
    let kind: FileKind
  }

  /// Looks up a name in a directory, and counts a reference to the node.
  ///
  /// - Throws: `noEntry` if there is none; `io` if the part of the directory that would have it is
  ///   damaged.
  package func lookUp(
    _ name: ByteString, in parent: UInt64
  ) throws(FileSystemError) -> NodeAttributes {
    let parent = try node(parent)
    guard let found = try find(name, in: parent) else { throw .noEntry }
    return enter(found, in: parent)
  }

  /// Makes a found entry a node, counts a reference to it, and returns its attributes.
  func enter(_ found: Found, in parent: MountNode) -> NodeAttributes {
    let node = nodes.enter(found.key, found.origin, in: parent.number)
    if let entry = found.entry, case .entry(let pointer, _) = node.origin {
      return attributes(of: entry, node, in: pointer.view)
    }
    return fixedAttributes(of: node)
  }

  private func find(
    _ name: ByteString, in parent: MountNode
  ) throws(FileSystemError) -> Found? {
    switch parent.origin {
    case .fixed(let directory): return find(name, in: directory)
    case .viewRoot(let view): return try find(name, in: view.tree, of: view, parent)
    case .entry(let pointer, let tree?): return try find(name, in: tree, of: pointer.view, parent)
    case .entry, .latest: throw .notDirectory
    }
  }

  private func find(
    _ name: ByteString, in tree: TreeReference, of view: SnapshotView, _ parent: MountNode
  ) throws(FileSystemError) -> Found? {
    do throws(StoreError) {
      guard let (page, position, entry) = try trees.find(name, in: tree) else { return nil }
      let pointer = EntryPointer(
        view: view, directory: tree, page: UInt32(page), position: UInt32(position))
      return found(entry, at: pointer, in: parent.key.ofEntries())
    } catch {
      throw fault(error, at: path(of: parent).appending(name))
    }
  }

  /// Returns a stored entry as found in a directory whose entries have a key.
  func found(_ entry: TreeEntry, at pointer: EntryPointer, in entries: NodeKey) -> Found {
    var key = entries.entry(at: pointer.ordinal)
    var tree: TreeReference?
    if case .directory(let below) = entry.node {
      tree = below
    } else if let group = entry.linkGroup {
      let state = (try? entry.named("-").encoded()).map { Blake2b.hash($0).leadingWord }
      key = pointer.view.key.link(group, state: state ?? 0)
    }
    return Found(
      name: entry.name, key: key, origin: .entry(pointer, tree: tree), entry: entry,
      kind: entry.node.kind)
  }

  // MARK: - Directories that are in no snapshot

  private func find(_ name: ByteString, in directory: FixedDirectory) -> Found? {
    guard let content = list?.current() else { return nil }
    switch directory {
    case .root: return fixedRoot(content).first { $0.name == name }
    case .snapshots:
      return content.positions[name].map { found(content.snapshots[$0].head, as: name) }
    case .apps: return content.apps[name] == nil ? nil : found(app: name)
    case .app(let app):
      guard let position = content.positions[name], content.apps[app]?.contains(position) == true
      else { return nil }
      return found(app, in: content.snapshots[position].head, as: name)
    }
  }

  /// Returns the entries of a directory that is in no snapshot.
  func entries(of directory: FixedDirectory) -> [Found] {
    guard let content = list?.current() else { return [] }
    switch directory {
    case .root: return fixedRoot(content)
    case .snapshots: return content.snapshots.map { found($0.head, as: $0.name) }
    case .apps: return content.apps.keys.sorted().map { found(app: $0) }
    case .app(let app):
      return (content.apps[app] ?? []).compactMap { position in
        found(app, in: content.snapshots[position].head, as: content.snapshots[position].name)
      }
    }
  }

  private func fixedRoot(_ content: SnapshotList.Content) -> [Found] {
    var entries = [
      Found(name: "apps", key: NodeKey("apps"), origin: .fixed(.apps), kind: .directory)
    ]
    if let latest = content.latest {
      let target = ByteString("snapshots").appending(latest.name)
      // The key includes the target, so that the kernel may keep it.
      entries.append(
        Found(
          name: "latest", key: NodeKey("latest", target.bytes),
          origin: .latest(target: target, latest.time), kind: .symlink))
    }
    entries.append(
      Found(
        name: "snapshots", key: NodeKey("snapshots"), origin: .fixed(.snapshots), kind: .directory))
    return entries
  }

  private func found(app name: ByteString) -> Found {
    Found(
      name: name, key: NodeKey("app", name.bytes), origin: .fixed(.app(name)), kind: .directory)
  }

  private func found(_ head: SnapshotHead, as name: ByteString) -> Found {
    let view = SnapshotView(key: Self.key(of: head, at: ""), of: head)
    return Found(name: name, key: view.key, origin: .viewRoot(view), kind: .directory)
  }

  private func found(_ app: ByteString, in head: SnapshotHead, as name: ByteString) -> Found? {
    view(of: app, in: head).map { view in
      Found(name: name, key: view.key, origin: .viewRoot(view), kind: .directory)
    }
  }
}
