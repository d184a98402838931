internal import Synchronization
internal import SystemIO

/// A search for extended attributes in the one snapshot that a mount shows. If it has none at all,
/// the kernel need not ask for them: cp(1) makes three requests about attributes for each file.
///
/// It begins after requests about many files without attributes, because it reads all trees. A
/// mount of all snapshots has no search: a later snapshot may have attributes, and the kernel would
/// not ask for them.
final class AttributeSearch: Sendable {
  private enum State {
    /// The number of entries without attributes about which the kernel asked.
    case counting(Int)
    case searching
    case ended
  }

  private let state = Mutex(State.counting(0))
  private let threads = Mutex<Workers?>(nil)
  private let isStopped = Atomic<Bool>(false)
  private let hasNone = Atomic<Bool>(false)
  /// Returns whether there are no attributes; false also if that is uncertain. Its argument returns
  /// whether to stop.
  private let search: @Sendable (_ isStopped: () -> Bool) -> Bool

  /// The number of entries without attributes after which the search begins.
  static let patience = 500

  init(_ search: @escaping @Sendable (_ isStopped: () -> Bool) -> Bool) { self.search = search }

  /// Whether it is certain that there are no attributes.
  var foundNone: Bool { hasNone.load(ordering: .acquiring) }

  /// Whether a search has begun and not ended.
  var isSearching: Bool {
    state.withLock { if case .searching = $0 { true } else { false } }
  }

  /// Records a request about an entry.
  func didAsk(hasAttributes: Bool) {
    let isDue = state.withLock { state in
      guard case .counting(let count) = state else { return false }
      state = hasAttributes ? .ended : .counting(count + 1)
      guard !hasAttributes, count + 1 >= Self.patience else { return false }
      state = .searching
      return true
    }
    if isDue { begin() }
  }

  /// Without a thread there is no search.
  private func begin() {
    guard let workers = try? Workers(count: 1, capacity: 1, name: "fuse-search") else {
      return state.withLock { $0 = .ended }
    }
    threads.withLock { $0 = workers }
    workers.submit { [self] in
      let isAbsent = search { isStopped.load(ordering: .relaxed) }
      hasNone.store(isAbsent, ordering: .releasing)
      state.withLock { $0 = .ended }
    }
  }

  /// Lets the search end.
  func beginStop() { isStopped.store(true, ordering: .relaxed) }

  /// Ends the search, and waits for its thread.
  func finish() {
    beginStop()
    threads.withLock { $0 }?.finish()
  }
}
