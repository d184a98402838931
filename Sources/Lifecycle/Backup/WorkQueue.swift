internal import Synchronization
internal import SystemIO

/// Hands out what is to be read, folder by folder, each before those in it and in the order of
/// names: so packs hold files as a restore wants them, and little is held of what is begun.
final class WorkQueue: Sendable {
  private let trees: [KeptTree]
  private let known: [KnownTree]
  private let links: HardLinks
  private let state: Mutex<State>

  private struct State {
    /// The next container to begin.
    var container = 0
    /// Folders of the container in hand that are to be entered, the next one last.
    var pending: [Int32] = []
    /// The children of the folder in hand that were not looked at yet.
    var folder = 0
    var rest: Slice<SpillableArray<Int32>> = SpillableArray()[...]
    var isVisited = true
    /// Units that are put off to the end.
    var late: [WorkUnit] = []
    var inHand = 0
    var isStopped = false
  }

  init(_ trees: [KeptTree], _ known: [KnownTree], _ links: HardLinks) {
    (self.trees, self.known, self.links) = (trees, known, links)
    state = Mutex(State())
  }

  /// Gives the next unit; nothing when there is none, or the work is stopped. Each is to be told
  /// `finish()` of.
  func next() -> WorkUnit? {
    state.withLock { state in
      guard !state.isStopped, let unit = make(&state) else { return nil }
      state.inHand += 1
      return unit
    }
  }

  /// Tells that a unit is done.
  func finish() { state.withLock { $0.inHand -= 1 } }

  /// Puts an entry off until all others were handed out.
  func putOff(_ entry: EntryID, in folder: EntryID) {
    let unit = WorkUnit(folder: folder, entries: [entry.index], isVisit: false, isLate: true)
    state.withLock { $0.late.append(unit) }
  }

  /// Hands nothing out any more.
  func stop() { state.withLock { $0.isStopped = true } }

  /// Whether nothing is handed out any more, and nothing is in hand.
  var isDone: Bool {
    state.withLock { $0.inHand == 0 && ($0.isStopped || isExhausted($0)) }
  }

  private func isExhausted(_ state: borrowing State) -> Bool {
    state.isVisited && state.pending.isEmpty && state.container == trees.count
      && state.late.isEmpty
  }

  private func make(_ state: inout State) -> WorkUnit? {
    while state.isVisited && state.rest.isEmpty {
      if let folder = state.pending.popLast() {
        enter(Int(folder), &state)
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

  /// Takes a folder in hand: of those in it, those that are not known as a whole follow.
  private func enter(_ folder: Int, _ state: inout State) {
    let (tree, known) = (trees[state.container - 1], known[state.container - 1])
    let children = tree.children(of: folder)
    state.folder = folder
    state.rest = children
    state.isVisited = false
    for child in children.reversed()
    where tree.scan.entries[Int(child)].status.kind == .directory && !known.isWhole(Int(child)) {
      state.pending.append(child)
    }
  }

  /// The next entries of the folder in hand: some small files, or one large.
  private func take(_ state: inout State) -> WorkUnit? {
    let number = state.container - 1
    let (tree, known) = (trees[number], known[number])
    var entries: [Int32] = []
    var bytes: UInt64 = 0
    while let child = state.rest.first, entries.count < WorkUnit.entryLimit {
      let index = Int(child)
      guard tree.isRead(index, known), !known.companions.contains(child),
        !links.isFollower(tree.id(index))
      else {
        state.rest.removeFirst()
        continue
      }
      let size = tree.scan.entries[index].status.size
      if !entries.isEmpty, bytes + size > WorkUnit.largeFile { break }
      bytes += size
      entries.append(child)
      state.rest.removeFirst()
    }
    let isVisit = !state.isVisited
    state.isVisited = true
    if entries.isEmpty, !isVisit { return make(&state) }
    return WorkUnit(
      folder: tree.id(state.folder), entries: entries, isVisit: isVisit)
  }
}
