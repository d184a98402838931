internal import CLinux
internal import Glibc

/// The directories from a walk's root down to the one in hand, open where that is cheap.
///
/// A tree may be deeper than a program may have files open, and its paths longer than the kernel
/// takes. So at most `limit` of the deepest rungs are open; one further up is opened again by `..`
/// from the rung below it, or by all names from the root when that one was moved, and is accepted
/// only if it is the directory that it was.
public struct DirectoryLadder: ~Copyable {
  private struct Rung {
    let name: ByteString
    /// The length of `relative` without this rung's name.
    let above: Int
    /// The descriptor, -1 while it is closed.
    var raw: Int32
    /// Known once it was closed.
    var identity: FileIdentity?
  }

  /// The directory that the ladder begins at.
  public let root: Directory
  private var rungs: [Rung] = []
  private var relative: [UInt8] = []
  /// The first rung that may be open; all behind it are.
  private var firstOpen = 0
  private let limit: Int

  /// Begins at the root, keeping at most `limit` (2 or more) further directories open.
  public init(root: consuming Directory, limit: Int = 64) {
    self.root = root
    self.limit = max(2, limit)
  }

  deinit {
    for rung in rungs where rung.raw >= 0 { _ = cl_close(rung.raw) }
  }

  /// How many directories lie below the root down to the one in hand: 0 for the root.
  public var depth: Int { rungs.count }

  /// The descriptor of the directory in hand.
  var raw: Int32 { rungs.last?.raw ?? root.raw }

  /// The path from the root to the directory in hand, without the root's own.
  public var relativePath: ByteString { ByteString(relative) }

  /// The names from the root down to the directory in hand.
  var names: [ByteString] { rungs.map(\.name) }

  /// The path of the directory in hand, for messages.
  public var path: ByteString { root.path.appending(relativePath) }

  /// Opens a child of the directory in hand, which becomes the one in hand. A link is refused, and
  /// with `expected` any other directory than that one.
  public mutating func descend(
    _ name: ByteString, _ expected: FileIdentity? = nil
  ) throws(SystemError) {
    try openAgain()
    let opened = try open(name, in: raw, expected)
    rungs.append(Rung(name: name, above: relative.count, raw: opened))
    if !relative.isEmpty { relative.append(ByteString.slash) }
    relative.append(contentsOf: name.bytes)
    closeFirst()
  }

  /// Goes up until the directory at `depth` is in hand. After an error nothing can be done in it, but
  /// going further up may succeed.
  public mutating func ascend(to depth: Int) throws(SystemError) {
    while let left = rungs.last, rungs.count > max(depth, 0) {
      rungs.removeLast()
      relative.removeLast(relative.count - left.above)
      openByParent(of: left.raw)
      if left.raw >= 0 { _ = cl_close(left.raw) }
    }
    firstOpen = min(firstOpen, max(rungs.count - 1, 0))
    try openAgain()
  }

  /// Calls `body` with the directory in hand, which stays the ladder's.
  public func withDirectory<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing Directory) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withDirectory(path, body)
  }

  /// Calls `body` with the directory in hand, of which the caller has the path ready.
  public func withDirectory<Result: ~Copyable, Failure: Error>(
    _ path: ByteString, _ body: (borrowing Directory) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let directory = Directory(adopting: raw, path: path)
    do throws(Failure) {
      let result = try body(directory)
      directory.release()
      return result
    } catch {
      directory.release()
      throw error
    }
  }

  /// Closes the uppermost open rungs that are too many, and notes which directories they are; one of
  /// which that cannot be told stays open.
  private mutating func closeFirst() {
    while rungs.count - firstOpen > limit {
      guard let identity = try? identity(of: rungs[firstOpen].raw, "") else { return }
      rungs[firstOpen].identity = identity
      _ = cl_close(rungs[firstOpen].raw)
      rungs[firstOpen].raw = -1
      firstOpen += 1
    }
  }

  /// Opens the last rung, if it is closed, by `..` from the one that was below it; leaves it closed
  /// when that one was moved elsewhere.
  private mutating func openByParent(of below: Int32) {
    guard below >= 0, let rung = rungs.last, rung.raw < 0,
      let opened = try? open("..", in: below, rung.identity)
    else { return }
    rungs[rungs.count - 1].raw = opened
  }

  /// Opens the last rung, if it is closed, by all names from the root.
  private mutating func openAgain() throws(SystemError) {
    guard raw < 0 else { return }
    var current: Int32 = -1
    for rung in rungs {
      let above = current
      defer { if above >= 0 { _ = cl_close(above) } }
      current = try open(rung.name, in: above >= 0 ? above : root.raw, rung.identity)
    }
    rungs[rungs.count - 1].raw = current
  }

  /// Opens a directory, and accepts it only if it is the expected one.
  private func open(
    _ name: ByteString, in directory: Int32, _ expected: FileIdentity?
  ) throws(SystemError) -> Int32 {
    let opened = Int32(
      try SystemError.check(.open, path.appending(name)) {
        unsafe name.withCString {
          unsafe cl_open(directory, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
        }
      })
    guard let expected else { return opened }
    do throws(SystemError) {
      if try identity(of: opened, name) == expected { return opened }
      throw SystemError(.open, path.appending(name), number: ESTALE)
    } catch {
      _ = cl_close(opened)
      throw error
    }
  }

  /// Which directory is in hand.
  func identity() throws(SystemError) -> FileIdentity { try identity(of: raw, "") }

  private func identity(
    of raw: Int32, _ name: ByteString
  ) throws(SystemError) -> FileIdentity {
    var status = cl_status()
    _ = try SystemError.check(.status, path.appending(name)) {
      unsafe cl_stat_open(raw, &status)
    }
    return FileStatus(status).identity
  }
}
