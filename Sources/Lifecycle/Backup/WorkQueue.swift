internal import Synchronization
internal import SystemIO

/// Hands out what is to be read, directory by directory, each before those in it and in the order of
/// names: so packs hold files as a restore wants them, and little is held of what is begun.
final class WorkQueue: Sendable {
  private let trees: [SelectedTree]
  private let known: [UnchangedEntries]
  private let links: HardLinks
  private let state: Mutex<State>

  private struct State {
    /// The next container to begin.
    var container = 0
    /// Directories of the container in hand that are to be entered, the next one last.
    var pending: [Int32] = []
    /// The children of the directory in hand that were not looked at yet.
    var directory = 0
    var rest: Slice<SpillableArray<Int32>> = SpillableArray()[...]
    var isVisited = true
    /// Units that are put off to the end.
    var late: [WorkItem] = []
    var active = 0
    var isStopped = false
  }

  init(_ trees: [SelectedTree], _ known: [UnchangedEntries], _ links: HardLinks) {
    (self.trees, self.known, self.links) = (trees, known, links)
    state = Mutex(State())
  }

  /// Gives the next unit; nothing when there is none, or the work is stopped. Each is to be told
  /// `finish()` of.
  func next() -> WorkItem? {
    state.withLock { state in
      guard !state.isStopped, let unit = make(&state) else { return nil }
      state.active += 1
      return unit
    }
  }

  /// Tells that a unit is done.
  func finish() { state.withLock { $0.active -= 1 } }

  /// Puts an entry off until all others were handed out.
  func deferred(_ entry: EntryID, in directory: EntryID) {
    let unit = WorkItem(directory: directory, entries: [entry.index], isVisit: false, isLate: true)
    state.withLock { $0.late.append(unit) }
  }

  /// Hands nothing out any more.
  func stop() { state.withLock { $0.isStopped = true } }

  /// Whether nothing is handed out any more, and nothing is in hand.
  var isDone: Bool {
    state.withLock { $0.active == 0 && ($0.isStopped || isExhausted($0)) }
  }

  private func isExhausted(_ state: borrowing State) -> Bool {
    state.isVisited && state.pending.isEmpty && state.container == trees.count
      && state.late.isEmpty
  }

  private func make(_ state: inout State) -> WorkItem? {
    while state.isVisited && state.rest.isEmpty {
      if let directory = state.pending.popLast() {
        enter(Int(directory), &state)
      } else if state.container < trees.count {
        if !trees[state.container].isEmpty, !known[state.container].isWhole(0) {
          state.pending.append(0)
        }
        state.container += 1
      } else {
        return state.late.popLast()
      }
    }
    return take(&state)
  }

  /// Takes a directory in hand: of those in it, those that are not known as a whole follow.
  private func enter(_ directory: Int, _ state: inout State) {
    let (tree, known) = (trees[state.container - 1], known[state.container - 1])
    let children = tree.children(of: directory)
    state.directory = directory
    state.rest = children
    state.isVisited = false
    for child in children.reversed()
    where tree.scan.entries[Int(child)].status.kind == .directory && !known.isWhole(Int(child)) {
      state.pending.append(child)
    }
  }

  /// The next entries of the directory in hand: some small files, or one large.
  private func take(_ state: inout State) -> WorkItem? {
    let number = state.container - 1
    let (tree, known) = (trees[number], known[number])
    var entries: [Int32] = []
    var bytes: UInt64 = 0
    while let child = state.rest.first, entries.count < WorkItem.entryLimit {
      let index = Int(child)
      guard tree.isRead(index, known), !known.companions.contains(child),
        !links.isFollower(tree.id(index))
      else {
        state.rest.removeFirst()
        continue
      }
      let size = tree.scan.entries[index].status.size
      if !entries.isEmpty, bytes + size > WorkItem.largeFile { break }
      bytes += size
      entries.append(child)
      state.rest.removeFirst()
    }
    let isVisit = !state.isVisited
    state.isVisited = true
    if entries.isEmpty, !isVisit { return make(&state) }
    return WorkItem(
      directory: tree.id(state.directory), entries: entries, isVisit: isVisit)
  }
}
