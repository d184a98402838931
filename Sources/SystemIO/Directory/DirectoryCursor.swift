internal import CLinux
internal import Glibc

/// A cursor over the directories below a root, with the directories down to the current one open.
/// Symbolic links are not followed.
///
/// A tree may be deeper than the limit of open files, and its paths longer than the kernel accepts.
/// At most `limit` of the deepest directories are open. One further up is opened again by `..` from
/// its child, or from the root if that child was moved, and is accepted only if it is still the
/// same directory.
public struct DirectoryCursor: ~Copyable {
  private struct Level {
    let name: ByteString
    /// The number that the caller has given to the directory, or -1.
    let number: Int32
    /// The length of `relative` without this directory's name.
    let above: Int
    /// The descriptor, or -1 while it is closed.
    var raw: Int32
    /// The identity, recorded when the directory was closed.
    var identity: FileIdentity?
  }

  /// The directory at which the walk begins.
  public let root: Directory
  private var levels: [Level] = []
  private var relative: [UInt8] = []
  /// The first directory that may be open; all after it are.
  private var firstOpen = 0
  private let limit: Int

  /// Begins at the root. At most `limit` (2 or more) further directories are kept open.
  public init(root: consuming Directory, limit: Int = 64) {
    self.root = root
    self.limit = max(2, limit)
  }

  deinit {
    for level in levels where level.raw >= 0 { _ = cl_close(level.raw) }
  }

  /// The number of levels below the root: 0 for the root.
  public var depth: Int { levels.count }

  /// The descriptor of the current directory.
  var raw: Int32 { levels.last?.raw ?? root.raw }

  /// The number of the current directory (`move(toNumbered:)`): 0 for the root.
  public var number: Int { levels.isEmpty ? 0 : Int(levels[levels.count - 1].number) }

  /// The path of the current directory, relative to the root.
  public var relativePath: ByteString { ByteString(relative) }

  /// The path of the current directory, for messages.
  public var path: ByteString { root.path.appending(relativePath) }

  /// Opens a child of the current directory and makes it the current one. A symbolic link is
  /// refused, as is a directory other than `expected` if that is given.
  public mutating func descend(
    _ name: ByteString, _ expected: FileIdentity? = nil
  ) throws(SystemError) {
    try descend(name, expected, number: -1)
  }

  private mutating func descend(
    _ name: ByteString, _ expected: FileIdentity?, number: Int32
  ) throws(SystemError) {
    try openAgain()
    let opened = try openChild(name, expected)
    levels.append(Level(name: name, number: number, above: relative.count, raw: opened))
    if !relative.isEmpty { relative.append(ByteString.slash) }
    relative.append(contentsOf: name.bytes)
    closeFirst(keeping: limit)
  }

  /// Opens a child of the current directory. If the limit of open files is reached, those above the
  /// current one are closed first.
  private mutating func openChild(
    _ name: ByteString, _ expected: FileIdentity?
  ) throws(SystemError) -> Int32 {
    do throws(SystemError) {
      return try open(name, in: raw, expected)
    } catch {
      guard error.code == .tooManyOpenFiles, levels.count - firstOpen > 1 else { throw error }
      closeFirst(keeping: 1)
      return try open(name, in: raw, expected)
    }
  }

  /// Goes up to the directory at `depth`. After an error the current directory cannot be used, but
  /// going further up may succeed.
  public mutating func ascend(to depth: Int) throws(SystemError) {
    while let left = levels.last, levels.count > max(depth, 0) {
      levels.removeLast()
      relative.removeLast(relative.count - left.above)
      openByParent(of: left.raw)
      if left.raw >= 0 { _ = cl_close(left.raw) }
    }
    firstOpen = min(firstOpen, max(levels.count - 1, 0))
    try openAgain()
  }

  /// Calls `body` with the current directory, which stays open.
  public func withDirectory<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing Directory) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withDirectory(named: path, body)
  }

  /// Goes to the directory at a path, through the nearest common ancestor with the current one.
  /// With `making`, missing directories are created, accessible only to the owner of the directory
  /// above.
  public mutating func move(to path: [ByteString], making: Bool = false) throws(SystemError) {
    var common = 0
    while common < min(path.count, levels.count), path[common] == levels[common].name {
      common += 1
    }
    try ascend(to: common)
    for name in path.dropFirst(common) {
      do throws(SystemError) {
        try descend(name)
      } catch {
        guard making, error.isAbsent else { throw error }
        try withDirectory { directory throws(SystemError) in
          try directory.createInherited(name)
        }
        try descend(name)
      }
    }
  }

  /// The failure to enter a directory of a numbered tree.
  public struct NumberedFailure: Error {
    /// The number of the directory: 0 for the root.
    public let number: Int
    public let error: SystemError
  }

  /// Goes to a directory of a tree whose directories have numbers, through the nearest common
  /// ancestor with the current one.
  ///
  /// - Parameters:
  ///   - numbers: The directories from below the root down to the wanted one. Numbers are positive.
  ///   - entry: Returns the name of a directory, and its identity if any other is to be refused.
  public mutating func move(
    toNumbered numbers: [Int32], _ entry: (Int) -> (name: ByteString, identity: FileIdentity?)
  ) throws(NumberedFailure) {
    var common = 0
    while common < min(numbers.count, levels.count), numbers[common] == levels[common].number {
      common += 1
    }
    do throws(SystemError) {
      try ascend(to: common)
    } catch {
      throw NumberedFailure(number: common == 0 ? 0 : Int(numbers[common - 1]), error: error)
    }
    for number in numbers[common...] {
      let (name, identity) = entry(Int(number))
      do throws(SystemError) {
        try descend(name, identity, number: number)
      } catch { throw NumberedFailure(number: Int(number), error: error) }
    }
  }

  /// Goes to the directory at a path and calls `body` with it.
  public mutating func withDirectory<Result: ~Copyable>(
    at path: [ByteString], making: Bool = false,
    _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try move(to: path, making: making)
    return try withDirectory(body)
  }

  /// Calls `body` with the current directory, whose path the caller already has.
  public func withDirectory<Result: ~Copyable, Failure: Error>(
    named path: ByteString, _ body: (borrowing Directory) throws(Failure) -> Result
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

  /// Closes the uppermost open directories beyond a number and records their identities. One whose
  /// identity cannot be read stays open.
  private mutating func closeFirst(keeping limit: Int) {
    while levels.count - firstOpen > limit {
      guard let identity = try? identity(of: levels[firstOpen].raw, "") else { return }
      levels[firstOpen].identity = identity
      _ = cl_close(levels[firstOpen].raw)
      levels[firstOpen].raw = -1
      firstOpen += 1
    }
  }

  /// Opens the last directory, if it is closed, by `..` from its former child. Leaves it closed if
  /// that child was moved.
  private mutating func openByParent(of below: Int32) {
    guard below >= 0, let level = levels.last, level.raw < 0,
      let opened = try? open("..", in: below, level.identity)
    else { return }
    levels[levels.count - 1].raw = opened
  }

  /// Opens the last directory, if it is closed, by name from the root.
  private mutating func openAgain() throws(SystemError) {
    guard raw < 0 else { return }
    var current: Int32 = -1
    for level in levels {
      let above = current
      defer { if above >= 0 { _ = cl_close(above) } }
      current = try open(level.name, in: above >= 0 ? above : root.raw, level.identity)
    }
    levels[levels.count - 1].raw = current
  }

  /// Opens a directory and refuses any other than the expected one.
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

  /// Returns the identity of the current directory.
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
