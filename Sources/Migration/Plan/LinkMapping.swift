internal import SystemIO

/// The targets that symbolic links get in their new places.
///
/// An absolute target in an old place gets the new path. A relative target may mean another entry
/// when seen from the new place, because the directories above differ: then it becomes absolute,
/// even if it leads out of the app's places. Between two homes of one form it keeps its meaning.
struct LinkMapping {
  private let route: MigrationRoute
  private let mapping: PathMapping

  /// The result for a link.
  struct Result {
    /// The new target; nil if the link is copied unchanged.
    var target: ByteString?
    /// The absolute path outside the app's places that the link leads to; nil if it leads to none.
    var outside: ByteString?
  }

  init(_ route: MigrationRoute) {
    self.route = route
    mapping = route.mapping
  }

  /// Returns the result for a link, or none for another entry. Other links on the path are not
  /// followed.
  func result(for move: MigrationPlan.Move) -> Result {
    guard let target = move.entry.target, !target.isEmpty else { return Result() }
    if !target.isAbsolute { return relative(target, move) }
    guard let new = mapping.newPath(of: target) else { return Result(outside: target) }
    return Result(target: new == target ? nil : new)
  }

  private func relative(_ target: ByteString, _ move: MigrationPlan.Move) -> Result {
    let (from, to) = (route.from.home, route.to.home)
    let old = Self.resolved(target, in: from.appending(move.entry.path.parent))
    let new = Self.resolved(target, in: to.appending(move.destination.parent))
    let isInHome = old.isWithin(from)
    if isInHome, case .path(let moved) = route.destination(of: old.relative(to: from)) {
      let real = to.appending(moved)
      return Result(target: real == new ? nil : mapping.newPath(of: old) ?? real)
    }
    // Between two homes the path may lead to the same entry of the other one.
    if new == old || isInHome && new == to.appending(old.relative(to: from)) { return Result() }
    return Result(target: old, outside: old)
  }

  /// Returns the path that a relative one leads to from a directory.
  private static func resolved(_ path: ByteString, in directory: ByteString) -> ByteString {
    var parts = directory.components
    for name in path.components where name != "." {
      if name == ".." { _ = parts.popLast() } else { parts.append(name) }
    }
    return ByteString(joining: parts, isAbsolute: true)
  }
}
