internal import SystemIO

/// The way back: what came goes to where it was staged, and what gave way comes back. Like the way
/// forward it can be taken again after an interruption at any point.
extension StepRunner {
  /// Takes a step back, as far as it was taken; tells whether anything had to be done. Those behind it
  /// have been taken back before.
  func rollBack(_ step: JournalStep) throws(SystemError) -> Bool {
    let isReturned = try returnNew(step)
    return try bringBackKept(step) || isReturned
  }

  /// Moves what came to where it was staged, unless that still holds it.
  private func returnNew(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let source = step.source, try !isStaged(step) else { return false }
    return try within(step.root, step.directory) { place throws(SystemError) in
      guard try place.statusIfPresent(step.name) != nil else { return false }
      let name = step.sourceName ?? step.name
      if source == step.root {
        try place.addOpened(step.name, to: place, as: name, note)
      } else {
        try ladder(source).withDirectory(step.directory, making: true) { from throws(SystemError) in
          try place.addOpened(step.name, to: from, as: name, note)
        }
      }
      return true
    } ?? false
  }

  /// Brings back what gave way. What stands in its place by now came since, and is kept in exchange.
  private func bringBackKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept else { return false }
    let used = keptNames[step]
    // What lies at the name where this runner kept nothing is another one's.
    if isFresh, step.unit != nil, used == nil { return false }
    let name = used ?? step.keptName ?? step.name
    if kept == step.root {
      return try within(kept, step.directory) { place throws(SystemError) in
        try bringBack(name, from: place, to: place, as: step.name)
      } ?? false
    }
    return try within(kept, step.directory) { trash throws(SystemError) in
      guard try trash.statusIfPresent(name) != nil else { return false }
      return try ladder(step.root).withDirectory(step.directory) { place throws(SystemError) in
        try bringBack(name, from: trash, to: place, as: step.name)
      }
    } ?? false
  }

  private func bringBack(
    _ kept: ByteString, from trash: borrowing Directory, to place: borrowing Directory,
    as name: ByteString
  ) throws(SystemError) -> Bool {
    guard let old = try trash.statusIfPresent(kept) else { return false }
    if let present = try place.statusIfPresent(name) {
      // It only has a second name: the step had not come farther.
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
