internal import SandboxModel
internal import SystemIO

/// A thread's place in a backup's source: the folder in hand and, where that is cheap, those above
/// it, open. Each is accepted only if it is the folder that the scan saw.
struct FolderPosition: ~Copyable {
  private var ladder: FolderLadder?
  private var container = -1
  /// The folders from the container's root down to the one in hand.
  private var way: [Int32] = []
  /// Its path, for messages.
  private var path: ByteString = ""

  /// A folder on the way that could not be entered.
  struct Failure: Error {
    let folder: Int
    let error: SystemError
  }

  /// Takes a folder in hand.
  mutating func go(to folder: Int, in tree: borrowing KeptTree) throws(Failure) {
    if isIn(folder, tree) { return }
    if container != tree.number || ladder == nil { try enter(tree) }
    guard var ladder = ladder.take() else { return }
    do throws(Failure) {
      try Self.move(&ladder, &way, to: folder, in: tree.scan)
      path = ladder.path
      self.ladder = consume ladder
    } catch {
      // Where the ladder stands now is not worth finding out: the next folder begins at the root.
      way = []
      throw error
    }
  }

  private func isIn(_ folder: Int, _ tree: borrowing KeptTree) -> Bool {
    container == tree.number && ladder != nil && !way.isEmpty && way.last == Int32(folder)
  }

  /// Calls `body` with the folder in hand.
  func withFolder<Result: ~Copyable>(
    _ body: (borrowing Folder) throws -> Result
  ) throws -> Result {
    switch ladder {
    case .some(let ladder): return try ladder.withFolder(path, body)
    case .none: throw SystemError.replaced("")
    }
  }

  private mutating func enter(_ tree: borrowing KeptTree) throws(Failure) {
    (container, way) = (tree.number, [])
    do throws(SystemError) {
      let root = try Folder.open(resolved: tree.scan.container.absolutePath)
      guard try root.status().identity == tree.scan.entries[0].status.identity else {
        throw SystemError.replaced(tree.scan.container.absolutePath)
      }
      ladder = FolderLadder(root: root)
    } catch { throw Failure(folder: 0, error: error) }
  }

  private static func move(
    _ ladder: inout FolderLadder, _ way: inout [Int32], to folder: Int,
    in scan: borrowing ContainerScan
  ) throws(Failure) {
    let wanted = scan.way(to: folder)
    let common = zip(way, wanted).prefix { $0 == $1 }.count
    if ladder.depth > common {
      do throws(SystemError) {
        try ladder.ascend(to: common)
      } catch { throw Failure(folder: common == 0 ? 0 : Int(wanted[common - 1]), error: error) }
    }
    for index in wanted[common...] {
      do throws(SystemError) {
        try ladder.descend(scan.name(Int(index)), scan.entries[Int(index)].status.identity)
      } catch { throw Failure(folder: Int(index), error: error) }
    }
    way = wanted
  }
}

extension ContainerScan {
  /// The folders below the root down to one, that one the last.
  func way(to folder: Int) -> [Int32] {
    var way: [Int32] = []
    var at = folder
    while at > 0 {
      way.append(Int32(at))
      at = Int(entries[at].parent)
    }
    way.reverse()
    return way
  }
}
