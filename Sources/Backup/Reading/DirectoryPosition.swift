internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// A thread's position in the source of a backup: the current directory and, if that is cheap, its
/// ancestors, open. A directory is accepted only if it is the one that the scan found.
struct DirectoryPosition: ~Copyable {
  private var ladder: DirectoryLadder?
  private var container = -1
  /// The directories from the container's root down to the current one.
  private var way: [Int32] = []
  /// The path of the current directory, for messages.
  private var path: ByteString = ""

  /// Thrown if a directory on the path could not be entered.
  struct Failure: Error {
    let directory: Int
    let error: SystemError
  }

  /// Moves to a directory.
  mutating func go(to directory: Int, in tree: borrowing SelectedTree) throws(Failure) {
    if isIn(directory, tree) { return }
    if container != tree.number || ladder == nil { try enter(tree) }
    guard var ladder = ladder.take() else { return }
    do throws(Failure) {
      try Self.move(&ladder, &way, to: directory, in: tree.scan)
      path = ladder.path
      self.ladder = consume ladder
    } catch {
      // The position of the ladder is unknown now: the next move begins at the root.
      way = []
      throw error
    }
  }

  private func isIn(_ directory: Int, _ tree: borrowing SelectedTree) -> Bool {
    container == tree.number && ladder != nil && !way.isEmpty && way.last == Int32(directory)
  }

  /// Calls `body` with the current directory.
  func withDirectory<Result: ~Copyable>(
    _ body: (borrowing Directory) throws -> Result
  ) throws -> Result {
    switch ladder {
    case .some(let ladder): return try ladder.withDirectory(path, body)
    case .none: throw SystemError.replaced("")
    }
  }

  private mutating func enter(_ tree: borrowing SelectedTree) throws(Failure) {
    (container, way) = (tree.number, [])
    do throws(SystemError) {
      let root = try Directory.open(resolved: tree.scan.container.absolutePath)
      guard try root.status().identity == tree.scan.entries[0].status.identity else {
        throw SystemError.replaced(tree.scan.container.absolutePath)
      }
      ladder = DirectoryLadder(root: root)
    } catch { throw Failure(directory: 0, error: error) }
  }

  private static func move(
    _ ladder: inout DirectoryLadder, _ way: inout [Int32], to directory: Int,
    in scan: borrowing ContainerScan
  ) throws(Failure) {
    let wanted = scan.way(to: directory)
    let common = zip(way, wanted).prefix { $0 == $1 }.count
    if ladder.depth > common {
      do throws(SystemError) {
        try ladder.ascend(to: common)
      } catch { throw Failure(directory: common == 0 ? 0 : Int(wanted[common - 1]), error: error) }
    }
    for index in wanted[common...] {
      do throws(SystemError) {
        try ladder.descend(scan.name(Int(index)), scan.entries[Int(index)].status.identity)
      } catch { throw Failure(directory: Int(index), error: error) }
    }
    way = wanted
  }
}

extension ContainerScan {
  /// Returns the directories below the root down to the given one, which is the last.
  func way(to directory: Int) -> [Int32] {
    var way: [Int32] = []
    var at = directory
    while at > 0 {
      way.append(Int32(at))
      at = Int(entries[at].parent)
    }
    way.reverse()
    return way
  }
}
