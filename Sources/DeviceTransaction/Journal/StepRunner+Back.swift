internal import SystemIO

/// Rolling back: new entries return to their staging directory, and the replaced entries to their
/// places. Like the forward direction, it can be repeated after an interruption at any point.
extension StepRunner {
  /// Rolls back a step as far as it was applied. Returns whether anything had to be done. The steps
  /// after it must have been rolled back before.
  func rollBack(_ step: JournalStep) throws(SystemError) -> Bool {
    let isReturned = try unplace(step)
    return try restoreKept(step) || isReturned
  }

  /// Moves the new entry back to its staging directory, unless it is still there.
  private func unplace(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let source = step.source, try !isStaged(step) else { return false }
    return try within(step.root, at: step.directory) { place throws(SystemError) in
      guard try place.statusIfPresent(step.name) != nil else { return false }
      let name = step.sourceName ?? step.name
      if source == step.root {
        try place.addOpened(step.name, to: place, as: name, note)
      } else {
        try cursor(source).withDirectory(step.directory, making: true) { from throws(SystemError) in
          try place.addOpened(step.name, to: from, as: name, note)
        }
      }
      return true
    } ?? false
  }

  /// Restores the replaced entry. An entry that has been created in its place since then is kept in
  /// exchange.
  private func restoreKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept else { return false }
    let used = keptNames[step]
    // If this runner kept nothing, an entry of that name belongs to another operation.
    if isFresh, step.unit != nil, used == nil { return false }
    let name = used ?? step.keptName ?? step.name
    if kept == step.root {
      return try within(kept, at: step.directory) { place throws(SystemError) in
        try restore(name, from: place, to: place, as: step.name)
      } ?? false
    }
    return try within(kept, at: step.directory) { trash throws(SystemError) in
      guard try trash.statusIfPresent(name) != nil else { return false }
      return try cursor(step.root).withDirectory(step.directory) { place throws(SystemError) in
        try restore(name, from: trash, to: place, as: step.name)
      }
    } ?? false
  }

  private func restore(
    _ kept: ByteString, from trash: borrowing Directory, to place: borrowing Directory,
    as name: ByteString
  ) throws(SystemError) -> Bool {
    guard let old = try trash.statusIfPresent(kept) else { return false }
    if let present = try place.statusIfPresent(name) {
      // The entry only has a second name: the step was not applied further.
      if present.identity == old.identity {
        try trash.remove(kept)
        return true
      }
      try place.keep(name, in: trash, as: kept, leaving: true, note)
    }
    try trash.addOpened(kept, to: place, as: name, note)
    return true
  }
}
