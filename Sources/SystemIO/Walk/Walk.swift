/// Walks a tree depth first in one thread. Directories are listed in batches by `getdents64(2)`,
/// and the status of each entry is read relative to the open directory, without following links.
///
/// Names may be any bytes, and trees of any depth. A directory, even a mount point, is entered only
/// if the visitor asks for it. Changes during the walk may or may not be seen; no entry is visited
/// twice unless it was renamed in the meantime. An entry that vanishes between the listing of its
/// name and the reading of its status or of its content is passed to the visitor; one that is moved
/// from a directory that was not listed yet into one that was listed is not visited at all.
///
/// The generic parts are inlinable, so that they are specialized for the visitor.
public struct Walk: ~Copyable {
  private var cursor: DirectoryCursor
  @usableFromInline var batch = WalkBatch()
  /// The names at the root that are visited; nil for all.
  private let only: [ByteString]?
  /// Whether the flags of files are read.
  private let readsFlags: Bool
  /// Whether the root was listed, if only some of its names are visited.
  private var isRootListed = false

  /// Creates a walk of the tree below an open directory.
  ///
  /// - Parameters:
  ///   - only: the names at the root that are visited, if they exist, without listing the root,
  ///     which may have many others. At most 100.
  ///   - readsFlags: whether `FileStatus.isFixed` is needed for files, too. The call that reports
  ///     it takes slightly longer.
  public init(
    _ root: consuming Directory, only: [ByteString]? = nil, readsFlags: Bool = false
  ) {
    cursor = DirectoryCursor(root: root)
    self.only = only
    self.readsFlags = readsFlags
  }

  /// Calls the visitor for each batch, a directory before its subdirectories. Can be called again
  /// to walk the tree in its then current state.
  @inlinable public mutating func run<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, state: Visitor.State
  ) {
    _ = run(&visitor, from: WalkStart(name: "", depth: 0, state: state))
  }

  /// Walks a directory and everything below it. Returns the directories not yet visited, in order,
  /// if the visitor yields them to another walk.
  ///
  /// A walk begins at its root, or at directories that another walk yielded, in their order: each
  /// is in one of the directories above the one before it.
  ///
  /// - Parameter above: Returns the names of the directories between the root and the start. Called
  ///   only if the walk is not below them yet, so that not every start costs a whole path.
  @inlinable public mutating func run<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, from start: WalkStart<Visitor.State>,
    below above: () -> [ByteString] = { [] }
  ) -> [WalkStart<Visitor.State>] {
    var pending: [Pending<Visitor.State>] = []
    do throws(SystemError) {
      let device = try move(to: start.name, depth: start.depth, below: above)
      list(
        &visitor, device: device, expected: start.identity, state: start.state, pending: &pending)
    } catch {
      if Self.isLost(error, to: Visitor.self) {
        visitor.lost(state: start.state)
      } else if let problem = problem(error, at: above() + [start.name]) {
        visitor.failed(problem, state: start.state)
      }
    }
    while !visitor.isDone, !visitor.isYielding, let next = pending.popLast() {
      do throws(SystemError) {
        try enter(next.name, depth: next.depth)
      } catch {
        report(error, at: next.name, to: &visitor, state: next.state)
        continue
      }
      list(
        &visitor, device: next.identity.device, expected: next.identity, state: next.state,
        pending: &pending)
    }
    return pending.reversed().map { directory in
      WalkStart(
        name: directory.name, depth: directory.depth, state: directory.state,
        identity: directory.identity)
    }
  }

  /// Lists the current directory, passes each batch to the visitor and records the directories to
  /// enter.
  ///
  /// - Parameter expected: the identity of the directory, or nil if any will do.
  @inlinable mutating func list<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, device: UInt64, expected: FileIdentity?, state: Visitor.State,
    pending: inout [Pending<Visitor.State>]
  ) {
    let first = pending.count
    var expected = Visitor.isStrict ? expected : nil
    do throws(SystemError) {
      while true {
        let hasEntries = try fill(device)
        if let identity = expected, try !isCurrent(identity) { return visitor.lost(state: state) }
        expected = nil
        guard hasEntries else { break }
        for failure in batch.failures {
          if failure.error.isMissing {
            visitor.vanished(failure.name, inode: failure.inode, state: state)
          } else {
            report(failure.error, at: failure.name, to: &visitor, state: state)
          }
        }
        let directory = directoryContext()
        var descent = WalkDescent<Visitor.State>()
        visitor.visit(batch, of: directory, state: state, descent: &descent)
        for (index, state) in descent.wanted {
          pending.append(Pending(batch, index, depth: directory.depth + 1, state: state))
        }
        directory.release()
        if descent.isAbandoned { pending.removeSubrange(first...) }
        if visitor.isDone || descent.isAbandoned { break }
      }
    } catch {
      report(error, at: "", to: &visitor, state: state)
    }
    // The stack is last in, first out: reversed, directories are entered in the order of the
    // listing.
    pending[first...].reverse()
  }

  @inlinable func report<Visitor: WalkVisitor & ~Copyable>(
    _ error: SystemError, at name: ByteString, to visitor: inout Visitor, state: Visitor.State
  ) {
    if Self.isLost(error, to: Visitor.self) {
      visitor.lost(state: state)
    } else if let problem = problem(error, name) {
      visitor.failed(problem, state: state)
    }
  }

  /// Whether an error shows that the directory is no longer where it was listed.
  @inlinable static func isLost<Visitor: WalkVisitor & ~Copyable>(
    _ error: SystemError, to visitor: Visitor.Type
  ) -> Bool {
    Visitor.isStrict ? error.isGoneOrReplaced : error.isMissing
  }
}

extension Walk {
  /// A directory to enter.
  @usableFromInline struct Pending<State> {
    @usableFromInline let name: ByteString
    @usableFromInline let identity: FileIdentity
    /// The number of levels below the root.
    @usableFromInline let depth: Int
    @usableFromInline let state: State

    @inlinable init(_ batch: borrowing WalkBatch, _ index: Int, depth: Int, state: State) {
      let entry = batch.entries[index]
      name = batch.name(entry)
      identity = entry.status.identity
      self.depth = depth
      self.state = state
    }
  }

  /// Makes a start the current directory, at the start of its listing, and returns its device. The
  /// directories that it shares with the current one stay open.
  @usableFromInline mutating func move(
    to name: ByteString, depth: Int, below above: () -> [ByteString]
  ) throws(SystemError) -> UInt64 {
    if depth == 0 {
      try cursor.ascend(to: 0)
      try cursor.root.descriptor.seek(to: 0)
      isRootListed = false
    } else {
      // Otherwise the current directory is the one with the start, or below it.
      if cursor.depth < depth - 1 { try cursor.move(to: above()) }
      try enter(name, depth: depth)
    }
    return try cursor.identity().device
  }

  /// Makes a directory at a depth the current one, a child of the one above it.
  @usableFromInline mutating func enter(_ name: ByteString, depth: Int) throws(SystemError) {
    try cursor.ascend(to: depth - 1)
    try cursor.descend(name)
  }

  /// Fills the batch with the next entries of the current directory, which is on `device`.
  @usableFromInline mutating func fill(_ device: UInt64) throws(SystemError) -> Bool {
    if let only, cursor.depth == 0 {
      if isRootListed { return false }
      isRootListed = true
      let children = present(only)
      batch.listing.fill(with: children)
    } else {
      guard try batch.listing.fill(from: cursor.raw, path: cursor.path) else { return false }
    }
    batch.readStatuses(in: cursor.raw, on: device, withFlags: readsFlags) { cursor.path }
    return true
  }

  /// Returns the names that exist at the root with their inode numbers, including those whose
  /// status cannot be read: it is read again, and the error reported.
  private func present(_ names: [ByteString]) -> [(name: ByteString, inode: UInt64)] {
    var found: [(name: ByteString, inode: UInt64)] = []
    for name in names {
      do throws(SystemError) {
        guard let status = try cursor.root.statusIfPresent(name) else { continue }
        found.append((name, status.identity.inode))
      } catch {
        found.append((name, 0))
      }
    }
    return found
  }

  /// Whether the current directory, whose first entries were just listed, has this identity. The
  /// listing usually shows it, but a different inode number in it proves nothing on some file
  /// systems.
  @usableFromInline func isCurrent(_ expected: FileIdentity) throws(SystemError) -> Bool {
    if batch.listing.ownInode == expected.inode { return true }
    return try cursor.identity() == expected
  }

  @usableFromInline func directoryContext() -> WalkDirectory {
    WalkDirectory(
      depth: cursor.depth, relativePath: cursor.relativePath,
      directory: Directory(adopting: cursor.raw, path: cursor.path))
  }

  /// Returns the problem to report to the visitor, or nil if the entry has vanished.
  @usableFromInline func problem(_ error: SystemError, _ name: ByteString) -> WalkProblem? {
    if error.isMissing { return nil }
    return WalkProblem(path: cursor.relativePath.appending(name), error: error)
  }

  /// Returns the problem for a directory at a path that was not reached.
  @usableFromInline func problem(_ error: SystemError, at path: [ByteString]) -> WalkProblem? {
    if error.isMissing { return nil }
    return WalkProblem(
      path: ByteString(joining: path), error: error)
  }
}
