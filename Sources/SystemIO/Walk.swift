/// Walks a tree depth first in one thread: each directory is listed in batches by `getdents64(2)` and
/// each entry looked at relative to the open directory, following no link.
///
/// Names may be any bytes and trees of any depth. A directory is entered only if the visitor says so,
/// mount points too. What changes during the walk may or may not be seen; nothing is seen twice
/// unless it was renamed meanwhile.
///
/// The generic parts are inlinable, so that they are compiled for the visitor where it is.
public struct Walk: ~Copyable {
  private var ladder: DirectoryLadder
  @usableFromInline var batch = WalkBatch()

  /// Prepares a walk of the tree below an open directory.
  public init(_ root: consuming Directory) {
    ladder = DirectoryLadder(root: root)
  }

  /// Walks, calling the visitor for each batch, a directory before what is below it. May be called
  /// again: it walks the tree as it is then.
  @inlinable
  public mutating func run<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, state: Visitor.State
  ) {
    _ = run(&visitor, from: WalkStart(path: [], state: state))
  }

  /// Walks a directory below the root and what is below that. Gives the directories that it did not come
  /// to, in the order in which it would have, when the visitor wanted to leave them to another walk.
  @inlinable
  public mutating func run<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, from start: WalkStart<Visitor.State>
  ) -> [WalkStart<Visitor.State>] {
    var pending: [PendingDirectory<Visitor.State>] = []
    do throws(SystemError) {
      let device = try go(to: start.path)
      list(&visitor, device, start.state, &pending)
    } catch {
      if let problem = problem(error, at: start.path) {
        visitor.failed(problem, state: start.state)
      }
    }
    while !visitor.isDone, !visitor.isYielding, let next = pending.popLast() {
      do throws(SystemError) {
        try enter(next.name, depth: next.depth)
      } catch {
        report(error, next.name, &visitor, next.state)
        continue
      }
      list(&visitor, next.device, next.state, &pending)
    }
    return pending.reversed().map { directory in
      WalkStart(path: path(of: directory.name, depth: directory.depth), state: directory.state)
    }
  }

  /// Lists the directory in hand, hands each batch over and notes what is to be entered.
  @inlinable
  mutating func list<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, _ device: UInt64, _ state: Visitor.State,
    _ pending: inout [PendingDirectory<Visitor.State>]
  ) {
    let first = pending.count
    do throws(SystemError) {
      while try fill(device) {
        for (name, error) in batch.failures { report(error, name, &visitor, state) }
        let directory = directoryContext()
        var descent = WalkDescent<Visitor.State>()
        visitor.visit(batch, of: directory, state: state, descent: &descent)
        for (index, state) in descent.wanted {
          pending.append(PendingDirectory(batch, index, depth: directory.depth + 1, state: state))
        }
        directory.release()
        if descent.isAbandoned { pending.removeSubrange(first...) }
        if visitor.isDone || descent.isAbandoned { break }
      }
    } catch {
      report(error, "", &visitor, state)
    }
    // Last in, first out: turned round, so that directories are entered in the order of the listing.
    pending[first...].reverse()
  }

  @inlinable
  func report<Visitor: WalkVisitor & ~Copyable>(
    _ error: SystemError, _ name: ByteString, _ visitor: inout Visitor, _ state: Visitor.State
  ) {
    if let problem = problem(error, name) { visitor.failed(problem, state: state) }
  }
}

/// A directory that is to be entered.
@usableFromInline
struct PendingDirectory<State> {
  @usableFromInline let name: ByteString
  @usableFromInline let device: UInt64
  /// Levels below the root.
  @usableFromInline let depth: Int
  @usableFromInline let state: State

  @inlinable
  init(_ batch: borrowing WalkBatch, _ index: Int, depth: Int, state: State) {
    let entry = batch.entries[index]
    name = batch.name(entry)
    device = entry.status.identity.device
    self.depth = depth
    self.state = state
  }
}

extension Walk {
  /// Takes the directory at a path in hand, at the beginning of its listing, and gives its device.
  @usableFromInline
  mutating func go(to path: [ByteString]) throws(SystemError) -> UInt64 {
    try ladder.ascend(to: 0)
    for name in path { try ladder.descend(name) }
    if path.isEmpty { try ladder.root.descriptor.seek(to: 0) }
    return try ladder.identity().device
  }

  /// The path of a directory that was to be entered next at a depth.
  @usableFromInline
  func path(of name: ByteString, depth: Int) -> [ByteString] {
    ladder.names.prefix(depth - 1) + [name]
  }

  /// Takes the directory at a depth in hand, a child of the one above it.
  @usableFromInline
  mutating func enter(_ name: ByteString, depth: Int) throws(SystemError) {
    try ladder.ascend(to: depth - 1)
    try ladder.descend(name)
  }

  /// Fills the batch with the next entries of the directory in hand, which is on a device.
  @usableFromInline
  mutating func fill(_ device: UInt64) throws(SystemError) -> Bool {
    guard try batch.listing.fill(from: ladder.raw, path: ladder.path) else { return false }
    batch.look(in: ladder.raw, on: device) { ladder.path }
    return true
  }

  @usableFromInline
  func directoryContext() -> WalkDirectory {
    WalkDirectory(
      depth: ladder.depth, relativePath: ladder.relativePath,
      directory: Directory(adopting: ladder.raw, path: ladder.path))
  }

  /// What the visitor is told of an error; nothing when something vanished.
  @usableFromInline
  func problem(_ error: SystemError, _ name: ByteString) -> WalkProblem? {
    if error.isMissing { return nil }
    return WalkProblem(path: ladder.relativePath.appending(name), error: error)
  }

  /// The same of a directory at a path, which was not reached.
  @usableFromInline
  func problem(_ error: SystemError, at path: [ByteString]) -> WalkProblem? {
    if error.isMissing { return nil }
    return WalkProblem(
      path: path.reduce(ByteString("")) { $0.appending($1) }, error: error)
  }
}
