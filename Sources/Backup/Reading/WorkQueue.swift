internal import ArchiveStore
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
      guard !state.isStopped, let item = make(&state) else { return nil }
      state.active += 1
      return item
    }
  }

  /// Records that an item is done.
  func finish() { state.withLock { $0.active -= 1 } }

  /// Defers an entry until all others were handed out.
  func deferred(_ entry: EntryID, in directory: EntryID) {
    let item = WorkItem(directory: directory, entries: [entry.index], isVisit: false, isLate: true)
    state.withLock { $0.late.append(item) }
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
    return removeNext(&state)
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
  private func removeNext(_ state: inout State) -> WorkItem? {
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

/// The entries of one directory that one thread reads together.
struct WorkItem: Sendable {
  let directory: EntryID
  /// Entries to read, in the order of their names.
  let entries: [Int32]
  /// Whether the directory itself is processed: one of its work items does that.
  let isVisit: Bool
  /// Whether the item was deferred. It must be read now.
  var isLate = false

  /// The maximum size of an item's files in bytes. A larger file is an item by itself: its frames
  /// keep all threads busy.
  static let largeFile: UInt64 = 4 << 20
  /// The maximum number of entries: about a millisecond of reading, so that the cost of taking an
  /// item is negligible and no thread waits long for the last one.
  static let entryLimit = 128
}

extension WorkItem {
  /// The results of a thread for some entries of one directory. One buffer holds the encoded
  /// entries.
  struct Results: Sendable {
    /// The processed entries, including the missing ones.
    private(set) var entries: [Entry] = []
    private(set) var bytes: [UInt8] = []
    /// Files created after the scan that are stored with a scanned one, for example a database's
    /// log.
    private(set) var extras: [Extra] = []
    /// The directory's own attributes and flags, if they were read.
    var metadata: StoredMetadata?

    struct Entry: Sendable {
      let index: Int32
      /// The range of the encoded entry; empty if the entry is missing.
      let range: Range<Int>
      /// The status after reading, or nil if it equals the scanned one.
      let status: FileStatus?
      /// Whether the next run can rely on the content.
      let isStable: Bool
    }

    /// Adds an encoded entry.
    mutating func add(
      _ index: Int, _ encoded: some Collection<UInt8>, status: FileStatus? = nil, isStable: Bool
    ) {
      let start = bytes.count
      bytes.append(contentsOf: encoded)
      entries.append(
        Entry(
          index: Int32(index), range: start..<bytes.count, status: status, isStable: isStable))
    }

    struct Extra: Sendable {
      let name: ByteString
      let encoded: [UInt8]
      let status: FileStatus
      let isStable: Bool
    }

    /// Adds a file that the scan did not find.
    mutating func add(_ extra: Extra) { extras.append(extra) }

    /// Adds an entry that is missing from the snapshot.
    mutating func addUnreadable(_ index: Int) {
      entries.append(Entry(index: Int32(index), range: 0..<0, status: nil, isStable: false))
    }
  }
}
