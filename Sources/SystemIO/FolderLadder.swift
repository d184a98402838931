internal import CLinux
internal import Glibc

/// The folders from a walk's root down to the one in hand, open where that is cheap.
///
/// A tree may be deeper than a program may have files open, and its paths longer than the kernel
/// takes. So at most `limit` of the deepest rungs are open; one further up is opened again by `..`
/// from the rung below it, or by name from the root when that one was moved, and is accepted only
/// if it is the folder that it was.
public struct FolderLadder: ~Copyable {
  private struct Rung {
    let name: ByteString
    let identity: FileIdentity
    var raw: Int32
  }

  let root: Folder
  private var rungs: [Rung] = []
  private var firstOpen = 0
  private let limit: Int

  /// Begins at the root, keeping at most `limit` (2 or more) further folders open.
  public init(root: consuming Folder, limit: Int = 64) {
    self.root = root
    self.limit = max(2, limit)
  }

  deinit {
    for rung in rungs where rung.raw >= 0 { _ = cl_close(rung.raw) }
  }

  /// How many folders lie below the root down to the one in hand: 0 for the root.
  public var depth: Int { rungs.count }

  /// The descriptor of the folder in hand.
  var raw: Int32 { rungs.last?.raw ?? root.raw }

  /// The path from the root to the folder in hand, without the root's own.
  public var relativePath: ByteString {
    ByteString(rungs.map(\.name.bytes).joined(separator: [ByteString.slash]))
  }

  /// The path of the folder in hand, for messages.
  public var path: ByteString { root.path.appending(relativePath) }

  /// Opens a child of the folder in hand, which becomes the one in hand.
  public mutating func descend(_ name: ByteString, _ identity: FileIdentity) throws(SystemError) {
    let parent = raw
    let opened = try SystemError.check(.open, path.appending(name)) {
      unsafe name.withCString { unsafe cl_open(parent, $0, Self.flags, 0) }
    }
    rungs.append(Rung(name: name, identity: identity, raw: Int32(opened)))
    if rungs.count - firstOpen > limit {
      _ = cl_close(rungs[firstOpen].raw)
      rungs[firstOpen].raw = -1
      firstOpen += 1
    }
  }

  /// Goes up until the folder at `depth` is in hand. After an error nothing can be done below the
  /// folder that could not be opened again, but going further up may succeed.
  public mutating func ascend(to depth: Int) throws(SystemError) {
    var failure: SystemError?
    while rungs.count > depth {
      let left = rungs.removeLast()
      let last = rungs.count - 1
      if last >= 0, rungs[last].raw < 0 {
        do { rungs[last].raw = try reopened(from: left.raw) } catch { failure = error }
      }
      if left.raw >= 0 { _ = cl_close(left.raw) }
      firstOpen = min(firstOpen, max(last, 0))
    }
    if let failure, raw < 0 { throw failure }
  }

  /// Calls `body` with the folder in hand, which stays the ladder's.
  public func withFolder<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing Folder) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let folder = Folder(adopting: raw, path: path)
    do throws(Failure) {
      let result = try body(folder)
      folder.release()
      return result
    } catch {
      folder.release()
      throw error
    }
  }

  /// Opens the last rung again, by `..` from the one below it or else by all names from the root.
  private func reopened(from below: Int32) throws(SystemError) -> Int32 {
    let wanted = rungs[rungs.count - 1].identity
    if below >= 0, let opened = try? open("..", in: below, wanted) { return opened }
    var current: Int32 = -1
    for rung in rungs {
      let above = current
      defer { if above >= 0 { _ = cl_close(above) } }
      current = try open(rung.name, in: above >= 0 ? above : root.raw, rung.identity)
    }
    return current
  }

  /// Opens a folder, and accepts it only if it is the one that it was.
  private func open(
    _ name: ByteString, in folder: Int32, _ wanted: FileIdentity
  ) throws(SystemError) -> Int32 {
    let opened = Int32(
      try SystemError.check(.open, path) {
        unsafe name.withCString { unsafe cl_open(folder, $0, Self.flags, 0) }
      })
    var status = cl_status()
    if unsafe cl_stat_open(opened, &status) == 0, FileStatus(status).identity == wanted {
      return opened
    }
    _ = cl_close(opened)
    throw SystemError(.open, path, number: ENOENT)
  }

  private static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
}
