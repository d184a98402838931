internal import DeviceScan
internal import Synchronization
internal import SystemIO

/// Hands out the entries to read, directory by directory, parents first and in the order of names.
/// Packs then hold files in the order of a restore, and few directories are incomplete at a time.
final class WorkQueue: Sendable {
  private let trees: [SelectedTree]
  private let known: [UnchangedEntries]
  private let links: HardLinks
  private let state: Mutex<State>

  private struct State {
    /// The next container to begin.
    var container = 0
    /// Directories of the current container to enter, the next one last.
    var pending: [Int32] = []
    /// The current directory and those of its children that were not examined yet.
    var directory = 0
    var rest: Slice<SpillableArray<Int32>> = SpillableArray()[...]
    var isVisited = true
    /// Items that are deferred to the end.
    var late: [WorkItem] = []
    var active = 0
    var isStopped = false
  }

  init(_ trees: [SelectedTree], known: [UnchangedEntries], links: HardLinks) {
    (self.trees, self.known, self.links) = (trees, known, links)
    state = Mutex(State())
  }

  /// Returns the next item, or nil if there is none or the work is stopped. Each item must be
  /// followed by a call of `finish()`.
  func next() -> WorkItem? {
    state.withLock { state in
      guard !state.isStopped, let unit = make(&state) else { return nil }
      state.active += 1
      return unit
    }
  }

  /// Records that an item is done.
  func finish() { state.withLock { $0.active -= 1 } }

  /// Defers an entry until all others were handed out.
  func deferred(_ entry: EntryID, in directory: EntryID) {
    let unit = WorkItem(directory: directory, entries: [entry.index], isVisit: false, isLate: true)
    state.withLock { $0.late.append(unit) }
  }

  /// Stops handing out items.
  func stop() { state.withLock { $0.isStopped = true } }

  /// Whether no item is in progress and no more will be handed out.
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

  /// Enters a directory, and queues the directories in it that have changes.
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

  /// Returns the next entries of the current directory: some small files, or one large file.
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
