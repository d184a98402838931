internal import ArchiveStore
package import SystemIO

extension SnapshotFileSystem {
  /// Returns the attributes of a node.
  package func attributes(of number: UInt64) throws(FileSystemError) -> NodeAttributes {
    let node = try node(number)
    guard case .entry(let pointer, _) = node.origin else { return fixedAttributes(of: node) }
    return attributes(of: try storedEntry(of: node), node, in: pointer.view)
  }

  /// Returns the stored entry of a node.
  ///
  /// - Throws: `invalid` for a node that is in no snapshot.
  func storedEntry(of node: MountNode) throws(FileSystemError) -> TreeEntry {
    guard case .entry(let pointer, _) = node.origin else { throw .invalid }
    do throws(StoreError) {
      return try entry(pointer)
    } catch { throw fault(error, at: nodes.node(node.parent).map(path) ?? "") }
  }

  func entry(_ pointer: EntryPointer) throws(StoreError) -> TreeEntry {
    let page = try trees.page(Int(pointer.page), of: pointer.directory)
    return page[Int(pointer.position)]
  }

  /// Returns the attributes of a stored entry.
  func attributes(
    of entry: TreeEntry, _ node: MountNode, in view: SnapshotView
  ) -> NodeAttributes {
    var attributes = NodeAttributes(
      number: node.number, kind: entry.node.kind, permissions: entry.permissions, links: 1,
      user: entry.owner, group: entry.group, size: 0, blocks: 0, modified: entry.modified,
      nameSeconds: NodeAttributes.constant, seconds: NodeAttributes.constant)
    switch entry.node {
    case .directory(let tree): setDirectory(tree, of: node, &attributes)
    case .file(let content):
      attributes.size = content.size
      attributes.blocks = (allocatedBytes(of: content, node) + 511) / 512
    case .symlink(let target): attributes.size = UInt64(target.count)
    case .characterDevice(let number), .blockDevice(let number): attributes.device = number.linux
    case .fifo, .socket: break
    }
    if let group = entry.linkGroup {
      turn.pass()
      attributes.links = links.count(of: group, in: view.snapshotTree)
    }
    return attributes
  }

  /// Sets the size and the number of links of a directory: its name, `.`, and `..` in each
  /// subdirectory. 1 means that the number is unknown, as for directories of Btrfs.
  private func setDirectory(
    _ tree: TreeReference, of node: MountNode, _ attributes: inout NodeAttributes
  ) {
    attributes.size = Self.directorySize
    do throws(StoreError) {
      attributes.links = 2 + (try trees.subdirectories(of: tree))
    } catch {
      _ = fault(error, at: node)
      attributes.links = 1
    }
  }

  /// The size that is shown for a directory, in bytes: that of a small one on a disk.
  private static let directorySize: UInt64 = 4096

  /// Returns the attributes of a node that has no entry.
  func fixedAttributes(of node: MountNode) -> NodeAttributes {
    var attributes = NodeAttributes(
      number: node.number, kind: .directory, permissions: 0o555, links: 2, user: owner.user,
      group: owner.group, size: Self.directorySize, blocks: 0, modified: Timestamp(seconds: 0),
      nameSeconds: SnapshotList.usualInterval, seconds: SnapshotList.usualInterval)
    switch node.origin {
    case .fixed(let directory): setFixed(directory, &attributes)
    case .latest(let target, let time):
      attributes.kind = .symlink
      attributes.permissions = 0o777
      attributes.links = 1
      attributes.size = UInt64(target.count)
      attributes.modified = time
    case .viewRoot(let view):
      setDirectory(view.tree, of: node, &attributes)
      attributes.modified = view.time
      attributes.seconds = NodeAttributes.constant
      if let entry = view.entry {
        attributes.permissions = entry.permissions
        (attributes.user, attributes.group) = (entry.owner, entry.group)
        attributes.modified = entry.modified
      }
    case .entry: break
    }
    return attributes
  }

  private func setFixed(_ directory: FixedDirectory, _ attributes: inout NodeAttributes) {
    guard let content = list?.current() else { return }
    let directories: Int
    switch directory {
    case .root:
      directories = 2
      attributes.nameSeconds = NodeAttributes.constant
    case .snapshots: directories = content.snapshots.count
    case .apps: directories = content.apps.count
    case .app(let name): directories = content.apps[name]?.count ?? 0
    }
    attributes.links = 2 + UInt32(clamping: directories)
    attributes.modified = content.snapshots.last?.head.time ?? attributes.modified
  }

  // MARK: - Links and attributes

  /// Returns the target of a symbolic link.
  package func target(of number: UInt64) throws(FileSystemError) -> ByteString {
    let node = try node(number)
    if case .latest(let target, _) = node.origin { return target }
    guard case .symlink(let target) = try storedEntry(of: node).node else { throw .invalid }
    return target
  }

  /// Returns the names of the extended attributes of a node.
  package func attributeNames(of number: UInt64) throws(FileSystemError) -> [ByteString] {
    let names = try attributes(storedFor: node(number)).map(\.name)
    attributeSearch?.didAsk(hasAttributes: !names.isEmpty)
    return names
  }

  /// Whether it is certain that no node has or will have an extended attribute.
  package var hasNoAttributes: Bool { attributeSearch?.foundNone ?? false }

  /// Whether attributes are being searched for.
  var isSearching: Bool { attributeSearch?.isSearching ?? false }

  /// Lets the search for attributes end.
  func beginStopSearching() { attributeSearch?.beginStop() }

  /// Ends the search for attributes.
  package func stopSearching() { attributeSearch?.finish() }

  /// Returns whether no entry of a view has attributes; false also if an entry cannot be read, or
  /// if the search was stopped.
  static func hasNoAttributes(
    in view: SnapshotView, _ makeReader: () throws -> RepositoryReader, isStopped: () -> Bool
  ) -> Bool {
    guard view.entry?.attributes.isEmpty ?? true, let reader = try? makeReader() else {
      return false
    }
    var isCertain = true
    do {
      try reader.walkPastDamage(view.tree) { _, finding in
        guard case .entry(let entry) = finding, entry.attributes.isEmpty, !isStopped() else {
          isCertain = false
          return .stop
        }
        return .enter
      }
    } catch { return false }
    return isCertain
  }

  /// Returns the value of an extended attribute.
  ///
  /// - Throws: `noData` if no attribute has that name; `unsupported` for labels of a host's
  ///   security policy, which are not backed up: ls(1) requests them for each file until it gets
  ///   this answer.
  package func value(
    of name: ByteString, of number: UInt64
  ) throws(FileSystemError) -> [UInt8] {
    let node = try node(number)
    guard let attribute = try attributes(storedFor: node).first(where: { $0.name == name }) else {
      throw name == Attribute.hostLabel ? .unsupported : .noData
    }
    do throws(StoreError) {
      if case .blob = attribute.value { turn.pass() }
      return try reader.value(of: attribute)
    } catch { throw fault(error, at: node) }
  }

  private func attributes(storedFor node: MountNode) throws(FileSystemError) -> [Attribute] {
    switch node.origin {
    case .fixed, .latest: []
    case .viewRoot(let view): view.entry?.attributes ?? []
    case .entry: try storedEntry(of: node).attributes
    }
  }
}
