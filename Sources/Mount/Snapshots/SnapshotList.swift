internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// The snapshots that a mount shows. The list is read again when it is used, at most every
/// `interval` seconds: new snapshots appear, and removed ones disappear.
final class SnapshotList: Sendable {
  private let selection: SnapshotSelection
  private let interval: Double
  /// Reads the heads of all snapshots.
  private let load: @Sendable () throws -> [SnapshotHead]
  /// Receives the error of each failed reading, and is notified of changes.
  private let didFail: @Sendable (any Error) -> Void
  private let didChange: @Sendable () -> Void
  private let state: Mutex<State>

  /// The interval of a mount, in seconds.
  static let usualInterval = 3.0

  private struct State {
    var content: Content
    var names: SnapshotNames
    var time: Double
    var isLoading = false
  }

  /// The list at a point in time.
  final class Content: Sendable {
    /// The snapshots with their names, the oldest first.
    let snapshots: [(name: ByteString, head: SnapshotHead)]
    /// The position of a name.
    let positions: [ByteString: Int]
    /// The positions of the snapshots with an app, by its identifier.
    let apps: [ByteString: [Int]]
    /// The name of the latest snapshot, and its time; nil without one.
    let latest: (name: ByteString, time: Timestamp)?

    init(
      _ heads: [SnapshotHead], named names: [SnapshotID: ByteString], _ selection: SnapshotSelection
    ) {
      let named = heads.compactMap { head in names[head.id].map { (name: $0, head: head) } }
      snapshots = named
      positions = Dictionary(
        named.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
      var apps: [ByteString: [Int]] = [:]
      for (position, snapshot) in named.enumerated() {
        let listed = snapshot.head.apps.filter { !$0.containers.isEmpty && selection.isListed($0) }
        for name in Set(listed.map { ByteString($0.identifier) }) where name.nameFault == nil {
          apps[name, default: []].append(position)
        }
      }
      self.apps = apps
      latest = named.last { selection.canBeLatest($0.head) }.map { ($0.name, $0.head.time) }
    }

    var ids: Set<SnapshotID> { Set(snapshots.map(\.head.id)) }
  }

  /// Reads the list for the first time.
  init(
    _ selection: SnapshotSelection, interval: Double,
    load: @escaping @Sendable () throws -> [SnapshotHead],
    didFail: @escaping @Sendable (any Error) -> Void, didChange: @escaping @Sendable () -> Void
  ) throws {
    (self.selection, self.interval, self.load) = (selection, interval, load)
    (self.didFail, self.didChange) = (didFail, didChange)
    let heads = try load().filter(selection.isShown)
    var names = SnapshotNames()
    let content = Content(heads, named: names.update(heads), selection)
    state = Mutex(State(content: content, names: names, time: Host.monotonicSeconds()))
  }

  /// Returns the list, which is read again if it is old. While another thread is reading it, and if
  /// it cannot be read, the old one is used.
  func current() -> Content {
    let (content, isDue) = state.withLock { state in
      let isDue = !state.isLoading && Host.monotonicSeconds() - state.time >= interval
      if isDue { state.isLoading = true }
      return (state.content, isDue)
    }
    return isDue ? refreshed(content) : content
  }

  private func refreshed(_ before: Content) -> Content {
    var heads: [SnapshotHead]?
    do {
      heads = try load().filter(selection.isShown)
    } catch {
      didFail(error)
    }
    if let read = heads, Set(read.map(\.id)) == before.ids { heads = nil }
    if heads != nil { didChange() }
    return finish(heads)
  }

  private func finish(_ heads: [SnapshotHead]?) -> Content {
    state.withLock { state in
      if let heads { state.content = Content(heads, named: state.names.update(heads), selection) }
      state.time = Host.monotonicSeconds()
      state.isLoading = false
      return state.content
    }
  }
}
