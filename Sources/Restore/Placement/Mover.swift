internal import DeviceTransaction
internal import SystemIO

/// Moves one staged entry of a plan to its place in the target.
struct Mover {
  let tree: PlannedTree
  /// The trash for replaced entries; nil in a plain directory, where they are deleted.
  let trash: TrashDirectory?
  /// The note of a directory whose permissions are opened for its move; nil without a journal.
  let note: OpenedNote?

  /// Moves an entry between the directories in which it is staged and placed.
  func move(
    _ number: Int, from: borrowing Directory, to: borrowing Directory
  ) throws(SystemError) {
    let (entry, name) = (tree.entries[number], tree.name(number))
    guard entry.action == .replace else { return try from.add(name, to: to) }
    if trash == nil, !entry.isMovedAside {
      if entry.changesKind { return try from.swap(name, in: to) }
      return try from.rename(name, to: name, in: to)
    }
    for _ in 0..<Directory.placings {
      let kept = try keep(number, name, of: to, beside: to, leaving: entry.changesKind)
      switch try from.place(name, in: to, as: name, over: kept, note) {
      case .placed: return
      case .occupied: continue
      case .exchanged:
        do throws(SystemError) {
          _ = try keep(number, name, of: from, beside: to, leaving: true)
        } catch {
          from.exchangeBack(name, with: name, in: to)
          throw error
        }
        return
      }
    }
    throw SystemError.replaced(to.path.appending(name))
  }

  /// Keeps an entry that is replaced: in the trash, or beside the new one.
  private func keep(
    _ number: Int, _ name: ByteString, of directory: borrowing Directory,
    beside place: borrowing Directory, leaving: Bool
  ) throws(SystemError) -> KeptEntry? {
    let entry = tree.entries[number]
    if entry.isMovedAside {
      return try directory.preserve(
        name, in: place, as: tree.asideName(number), leaving: leaving, note)
    }
    let path = tree.path(Int(entry.parent), from: 0).components
    return try trash?.preserve(name, of: directory, at: path, leaving: leaving)
  }
}
