internal import SystemIO

/// A step of a unit that could not be taken, for which those before it were taken back.
struct UnitFailure: Error {
  /// The step, by its place in the unit.
  let step: Int
  let error: SystemError
  /// The step that could not be taken back, with why; nothing where all were.
  let left: (step: JournalStep, error: SystemError)?
}

/// Steps that belong together: all of them are taken, or none.
extension StepRunner {
  /// Takes the steps of a unit; where one cannot be taken, takes back it and those before it. Tells how
  /// many had to be taken.
  func takeAll(_ unit: some BidirectionalCollection<JournalStep>) throws(UnitFailure) -> Int {
    var taken = 0
    let begun = isFresh ? 0 : try begun(unit)
    for (number, step) in unit.enumerated() where number >= begun {
      // Of a step with nothing staged nothing came that could go back.
      var isBegun = true
      do throws(SystemError) {
        isBegun = try take(step)
        if isBegun { taken += 1 }
        if !isBegun, isFresh, step.source != nil { throw SystemError.replaced(step.path) }
      } catch {
        let left = rollBackAll(unit.prefix(isBegun ? number + 1 : number))
        throw UnitFailure(step: number, error: error, left: left)
      }
    }
    return taken
  }

  /// How many steps of a unit were taken before an interruption: all up to the last one of which nothing
  /// is staged any more, or where nothing comes, all that went. What lies in their places came since
  /// then, and is not to go.
  private func begun(
    _ unit: some BidirectionalCollection<JournalStep>
  ) throws(UnitFailure) -> Int {
    var begun = 0
    let hasSources = unit.contains { $0.source != nil }
    for (number, step) in unit.enumerated() where !hasSources || step.source != nil {
      do throws(SystemError) {
        let isTaken = try hasSources ? !isStaged(step) : isKept(step)
        if isTaken { begun = number + 1 }
      } catch {
        throw UnitFailure(step: number, error: error, left: nil)
      }
    }
    return begun
  }

  /// Takes steps back, the last first; gives the one that cannot be. Those before it stay taken: so the
  /// recovery can go on with them, or back.
  private func rollBackAll(
    _ steps: some BidirectionalCollection<JournalStep>
  ) -> (step: JournalStep, error: SystemError)? {
    for step in steps.reversed() {
      do throws(SystemError) { _ = try rollBack(step) } catch { return (step, error) }
    }
    return nil
  }
}
