internal import SystemIO

/// Steps of one item: all of them are applied, or none.
extension StepRunner {
  /// Applies the steps of an item. If one cannot be applied, it and the steps before it are rolled
  /// back. Returns the number of steps that had to be applied.
  ///
  /// If an item has several files, which are those of a database, the present ones get their second
  /// names first. So all of them are kept whatever a program does with the others while only a part
  /// is in place: SQLite, for example, deletes a log without its database.
  package func applyAll(
    _ item: some BidirectionalCollection<JournalStep>
  ) throws(Failure) -> Int {
    var applied = 0
    let begun = isFresh ? 0 : try begun(item)
    if begun < item.count { try requireUnchanged(item, begun) }
    addSecondNames(item.dropFirst(begun))
    for (number, step) in item.enumerated() where number >= begun {
      // A step without a staged entry has placed nothing that could be moved back.
      var isBegun = true
      do throws(SystemError) {
        isBegun = try apply(step)
        if isBegun { applied += 1 }
        if !isBegun, isFresh, step.source != nil { throw SystemError.replaced(step.path) }
      } catch {
        let end = isBegun ? number + 1 : number
        let left = rollBackAll(item.prefix(end))
        for step in item.dropFirst(end) { try? removeSecondName(step) }
        throw Failure(step: number, error: error, remaining: left)
      }
    }
    return applied
  }

  /// Gives the present files of an item with several files their second names. Where a file cannot
  /// have one, its step moves it.
  func addSecondNames(_ item: some Collection<JournalStep>) {
    if item.count > 1 { for step in item { try? addSecondName(step) } }
  }

  /// Returns the number of steps of an item that were applied before an interruption: all up to the
  /// last one whose entry is no longer staged or, in an item that adds nothing, up to the last one
  /// whose present entry was moved away. Entries at these paths have been created since then and
  /// stay.
  private func begun(
    _ item: some BidirectionalCollection<JournalStep>
  ) throws(Failure) -> Int {
    var begun = 0
    let hasSources = item.contains { $0.source != nil }
    for (number, step) in item.enumerated() where !hasSources || step.source != nil {
      do throws(SystemError) {
        let isApplied = try hasSources ? !isStaged(step) : isKept(step)
        if isApplied { begun = number + 1 }
      } catch {
        throw Failure(step: number, error: error, remaining: nil)
      }
    }
    return begun
  }

  /// Rolls back steps, last first. Returns the step that cannot be rolled back, or nil. The steps
  /// before it stay applied, so that the recovery can continue in either direction.
  private func rollBackAll(
    _ steps: some BidirectionalCollection<JournalStep>
  ) -> (step: JournalStep, error: SystemError)? {
    for step in steps.reversed() {
      do throws(SystemError) { _ = try rollBack(step) } catch { return (step, error) }
    }
    return nil
  }
}

// MARK: - Changes since an interruption

extension StepRunner {
  /// The ends of the names of files that SQLite applies to the database beside them.
  private static let logs: [[UInt8]] = [Array("-wal".utf8), Array("-journal".utf8)]

  /// Rolls back an item that was partly applied before an interruption, if another program has
  /// written to its files since: the remaining ones would not match them.
  private func requireUnchanged(
    _ item: some BidirectionalCollection<JournalStep>, _ begun: Int
  ) throws(Failure) {
    guard let since = interruptedSince else { return }
    let changed: Int?
    do throws(SystemError) {
      changed = try changedStep(of: item, begun, since)
    } catch {
      throw Failure(step: begun, error: error, remaining: nil)
    }
    guard let changed else { return }
    let left = rollBackChanged(item.prefix(begun), since)
    for step in item.dropFirst(begun) { try? removeSecondName(step) }
    let path = item[item.index(item.startIndex, offsetBy: changed)].path
    throw Failure(
      step: changed, error: SystemError.replaced(path), remaining: left, isChanged: true)
  }

  /// Returns the number of a step whose file another program has changed, or nil.
  private func changedStep(
    of item: some BidirectionalCollection<JournalStep>, _ begun: Int, _ since: Timestamp
  ) throws(SystemError) -> Int? {
    let filled = Set(item.lazy.filter { $0.source != nil }.map(\.path))
    for (number, step) in item.prefix(begun).enumerated() {
      let present = try present(step)
      if step.source == nil {
        // It was moved away. If a later step fills its path, that step finds the entry there.
        if present != nil, !filled.contains(step.path) { return number }
      } else if present.map({ $0.modified > since }) ?? true {
        return number
      }
    }
    guard let last = item.last, let source = last.source,
      try staged(last, source)?.kind == .file
    else { return nil }
    let paths = Set(item.lazy.map(\.path))
    for suffix in Self.logs {
      var log = last
      log.path = ByteString(last.path.bytes + suffix)
      guard log.name.count <= Int(UInt8.max), !paths.contains(log.path),
        let present = try present(log), present.kind == .file, present.modified > since
      else { continue }
      return item.count - 1
    }
    return nil
  }

  /// Rolls back steps whose files another program may have changed: these are kept in exchange for
  /// the previous ones, where those were. Returns the step that cannot be rolled back, or nil.
  private func rollBackChanged(
    _ steps: some BidirectionalCollection<JournalStep>, _ since: Timestamp
  ) -> (step: JournalStep, error: SystemError)? {
    for step in steps.reversed() {
      do throws(SystemError) {
        let isChanged = try present(step).map { $0.modified > since } ?? false
        guard isChanged, step.source != nil, step.kept != nil else {
          _ = try rollBack(step)
          continue
        }
        if try restoreKept(step) { continue }
        _ = try within(step.root, at: step.directory) { parent throws(SystemError) in
          try preserve(step, parent)
        }
      } catch { return (step, error) }
    }
    return nil
  }
}
