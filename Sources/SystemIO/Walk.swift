/// Walks a tree depth first in one thread: each folder is listed in batches by `getdents64(2)` and
/// each entry looked at by `statx(2)` relative to the open folder, following no link.
///
/// Names may be any bytes and trees of any depth. A folder is entered only if the visitor says so,
/// mount points too. What changes during the walk may or may not be seen; nothing is seen twice
/// unless it was renamed meanwhile.
public struct Walk: ~Copyable {
  private var ladder: FolderLadder
  private var batch = WalkBatch()

  /// Prepares a walk of the tree below an open folder.
  public init(_ root: consuming Folder) {
    ladder = FolderLadder(root: root)
  }

  private struct Pending<State> {
    let name: ByteString
    let identity: FileIdentity
    let depth: Int
    let state: State
  }

  /// Walks, calling the visitor for each batch, a folder before what is below it.
  public mutating func run<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, state: Visitor.State
  ) {
    var pending: [Pending<Visitor.State>] = []
    list(&visitor, state, &pending)
    while let next = pending.popLast() {
      do throws(SystemError) {
        try ladder.ascend(to: next.depth - 1)
        try ladder.descend(next.name, next.identity)
      } catch {
        report(error, next.name, &visitor, next.state)
        continue
      }
      list(&visitor, next.state, &pending)
    }
  }

  private mutating func list<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, _ state: Visitor.State, _ pending: inout [Pending<Visitor.State>]
  ) {
    let first = pending.count
    do throws(SystemError) {
      while try batch.listing.fill(from: ladder.raw, path: ladder.path) {
        look(&visitor, state)
        visit(&visitor, state, &pending)
      }
    } catch {
      report(error, "", &visitor, state)
    }
    // Last in, first out: turned round, so that folders are entered in the order of the listing.
    pending[first...].reverse()
  }

  /// Looks at each name of the listing.
  private mutating func look<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, _ state: Visitor.State
  ) {
    batch.entries.removeAll(keepingCapacity: true)
    let raw = ladder.raw
    for place in batch.listing.places {
      do throws(SystemError) {
        let status = try batch.listing.status(
          place, in: raw, path: ladder.path.appending(batch.listing.name(place)))
        let range = place.offset..<(place.offset + place.length)
        batch.entries.append(WalkBatch.Entry(nameRange: range, status: status))
      } catch {
        report(error, batch.listing.name(place), &visitor, state)
      }
    }
  }

  /// Hands the batch over and notes what is to be entered.
  private mutating func visit<Visitor: WalkVisitor & ~Copyable>(
    _ visitor: inout Visitor, _ state: Visitor.State, _ pending: inout [Pending<Visitor.State>]
  ) {
    let folder = WalkFolder(
      depth: ladder.depth, relativePath: ladder.relativePath,
      folder: Folder(adopting: ladder.raw, path: ladder.path))
    var descent = WalkDescent<Visitor.State>()
    visitor.visit(batch, of: folder, state: state, descent: &descent)
    folder.release()
    for (index, state) in descent.wanted {
      let entry = batch.entries[index]
      pending.append(
        Pending(
          name: batch.name(entry), identity: entry.status.identity, depth: ladder.depth + 1,
          state: state))
    }
  }

  private func report<Visitor: WalkVisitor & ~Copyable>(
    _ error: SystemError, _ name: ByteString, _ visitor: inout Visitor, _ state: Visitor.State
  ) {
    if error.isMissing { return }
    let path = ladder.relativePath.appending(name)
    visitor.failed(WalkProblem(path: path, error: error), state: state)
  }
}
