package import ArchiveStore
internal import Codecs
internal import Synchronization
package import SystemIO

/// The snapshots of a repository as a read-only file system: its operations without the kernel.
/// Safe to use from any thread.
///
/// A node that `lookUp` or `enter` returned is known until `forget`.
package final class SnapshotFileSystem: Sendable {
  let reader: SharedReader
  /// The turn of the threads that receive requests. It is passed before anything that may wait.
  let turn: ReceivingTurn
  let list: SnapshotList?
  let nodes: NodeTable
  let trees: TreeCache
  let links: LinkCounts
  let damage: DamageReports
  /// The search for extended attributes in the only snapshot; nil if all snapshots are shown.
  let attributeSearch: AttributeSearch?
  /// The owner of the directories that are in no snapshot: the user who mounts.
  let owner = (user: Host.userID, group: Host.groupID)
  /// Lists of pieces of large files, of at most 8 MiB.
  let lists = Mutex(CostBoundedCache<PieceListKey, [Piece]>(capacity: 8 << 20))
  /// The allocated sizes of files with lists of pieces, in bytes.
  let allocated = Mutex(CostBoundedCache<Content, UInt64>(capacity: 1 << 20))
  private let openDirectories = Mutex(OpenDirectories())

  private struct OpenDirectories {
    var handles: [UInt64: DirectoryHandle] = [:]
    var last: UInt64 = 0
  }

  private init(
    _ reader: SharedReader, _ list: SnapshotList?, root: MountNode.Origin, indexCache: IndexCache?,
    damage: DamageReports, turn: ReceivingTurn = ReceivingTurn()
  ) {
    self.reader = reader
    self.turn = turn
    self.list = list
    self.damage = damage
    nodes = NodeTable(
      root: MountNode(number: NodeKey.rootNumber, key: NodeKey("root"), root))
    trees = TreeCache(reader, turn)
    let repository = reader.repository
    let makeReader: @Sendable () throws -> RepositoryReader = {
      try repository.beginReading(cache: indexCache)
    }
    links = LinkCounts(makeReader)
    if case .viewRoot(let view) = root {
      attributeSearch = AttributeSearch {
        SnapshotFileSystem.hasNoAttributes(in: view, makeReader, isStopped: $0)
      }
    } else {
      attributeSearch = nil
    }
  }

  /// Shows all selected snapshots: `snapshots`, `latest` and `apps`.
  ///
  /// - Parameters:
  ///   - interval: the seconds after which the list of snapshots is read again.
  ///   - indexCache: the host's copies of the index.
  ///   - report: receives each damage that is found, once, and other problems.
  package convenience init(
    _ reader: SharedReader, _ selection: SnapshotSelection = SnapshotSelection(),
    heads: SnapshotHeadCache? = nil, indexCache: IndexCache? = nil,
    interval: Double = SnapshotFileSystem.usualInterval,
    report: @escaping @Sendable (String) -> Void
  ) throws {
    let damage = DamageReports(report)
    let turn = ReceivingTurn()
    let repository = reader.repository
    let list = try SnapshotList(
      selection, interval: interval,
      load: {
        turn.pass()
        let found = try repository.heads(cache: heads)
        for error in found.damaged {
          damage.add(error.description, isDamage: error.kind == .damaged)
        }
        return found.heads
      },
      didFail: {
        damage.add("the list of snapshots cannot be read again: \($0)", isDamage: false)
      },
      didChange: {
        // A new snapshot may need index objects that were added with it.
        do throws(StoreError) {
          try reader.refresh()
        } catch { damage.add(error.description, isDamage: error.kind == .damaged) }
      })
    self.init(
      reader, list, root: .fixed(.root), indexCache: indexCache, damage: damage, turn: turn)
  }

  /// Shows one snapshot, or the part at a logical path of it, as the root.
  ///
  /// - Throws: `missing` if the snapshot has no directory at that path.
  package convenience init(
    _ reader: SharedReader, snapshot head: SnapshotHead, path: ByteString = "",
    indexCache: IndexCache? = nil, report: @escaping @Sendable (String) -> Void
  ) throws(StoreError) {
    let key = Self.key(of: head, at: path)
    guard let view = try Self.view(of: head, at: path, key: key, TreeCache(reader, ReceivingTurn()))
    else {
      throw StoreError(
        .missing, "find", subject: path.description,
        reason: "snapshot \(head.id.hex.prefix(8)) has no such directory")
    }
    self.init(
      reader, nil, root: .viewRoot(view), indexCache: indexCache, damage: DamageReports(report))
  }

  /// The interval at which the list of snapshots is read again, in seconds.
  package static var usualInterval: Double { SnapshotList.usualInterval }

  /// The number of the root.
  package static var root: UInt64 { NodeKey.rootNumber }

  /// The number of reports of damage.
  package var damageCount: Int { damage.count }

  /// The number of snapshots that are shown.
  package var snapshotCount: Int { list?.current().snapshots.count ?? 1 }

  /// The number of nodes that the kernel knows.
  package var nodeCount: Int { nodes.count }

  /// The size of the repository's packs in bytes.
  package var packedBytes: UInt64 { reader.packedBytes }

  /// Removes references to a node.
  package func forget(_ number: UInt64, references: UInt64) {
    nodes.forget(number, references: references)
  }

  func node(_ number: UInt64) throws(FileSystemError) -> MountNode {
    guard let node = nodes.node(number) else { throw .noEntry }
    return node
  }

  // MARK: - Open directories

  func register(_ handle: DirectoryHandle) -> UInt64 {
    openDirectories.withLock { open in
      open.last += 1
      open.handles[open.last] = handle
      return open.last
    }
  }

  func handle(_ number: UInt64) throws(FileSystemError) -> DirectoryHandle {
    guard let handle = openDirectories.withLock({ $0.handles[number] }) else { throw .invalid }
    return handle
  }

  /// Closes a directory.
  package func closeDirectory(_ handle: UInt64) {
    openDirectories.withLock { _ = $0.handles.removeValue(forKey: handle) }
  }
}

/// The key of a decoded list of pieces.
struct PieceListKey: Hashable {
  let list: Piece
  let level: UInt8
}
