package import SystemIO

/// A step of a unit that could not be applied. The steps before it were rolled back.
package struct UnitFailure: Error {
  /// The index of the step in the unit.
  package let step: Int
  package let error: SystemError
  /// The step that could not be rolled back and the reason, or nil if all were rolled back.
  package let left: (step: JournalStep, error: SystemError)?
}

/// Steps of one unit: all of them are applied, or none.
extension StepRunner {
  /// Applies the steps of a unit. If one cannot be applied, it and the steps before it are rolled
  /// back. Returns the number of steps that had to be applied.
  package func applyAll(_ unit: some BidirectionalCollection<JournalStep>) throws(UnitFailure)
    -> Int
  {
    var taken = 0
    let begun = isFresh ? 0 : try begun(unit)
    for (number, step) in unit.enumerated() where number >= begun {
      // A step without a staged entry has placed nothing that could be moved back.
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

  /// Returns the number of steps of a unit that were applied before an interruption: all up to the
  /// last one whose entry is no longer staged or, in a unit that adds nothing, up to the last one
  /// whose present entry was moved away. Entries at these paths have been created since then and
  /// stay.
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
