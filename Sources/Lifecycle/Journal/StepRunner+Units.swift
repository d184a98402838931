internal import SystemIO

/// A step of a unit that could not be taken, for which those before it were taken back.
struct UnitFailure: Error {
  /// The step, by its place in the unit.
  let step: Int
  let error: SystemError
  /// Steps that could not be taken back, with why.
  let left: [(step: JournalStep, error: SystemError)]
}

/// Steps that belong together: all of them are taken, or none.
extension StepRunner {
  /// Takes the steps of a unit; where one cannot be taken, takes back it and those before it. Tells how
  /// many had to be taken.
  ///
  /// - Parameter resuming: whether some of them may have been taken before, so that nothing is staged of
  ///   what they bring.
  func takeAll(
    _ unit: some BidirectionalCollection<JournalStep>, resuming: Bool
  ) throws(UnitFailure) -> Int {
    var taken = 0
    for (number, step) in unit.enumerated() {
      do throws(SystemError) {
        if try take(step) {
          taken += 1
        } else if !resuming, step.source != nil {
          throw SystemError.replaced(step.path)
        }
      } catch {
        let left = takeBackAll(unit.prefix(number + 1))
        throw UnitFailure(step: number, error: error, left: left)
      }
    }
    return taken
  }

  private func takeBackAll(
    _ steps: some BidirectionalCollection<JournalStep>
  ) -> [(step: JournalStep, error: SystemError)] {
    steps.reversed().compactMap { step in
      do throws(SystemError) {
        _ = try takeBack(step)
        return nil
      } catch { return (step, error) }
    }
  }
}

extension [JournalStep] {
  /// The steps by units, each of which is taken as one; a step that stands alone is one by itself.
  var units: [ArraySlice<JournalStep>] {
    var units: [ArraySlice<JournalStep>] = []
    var start = startIndex
    for at in indices where at > start {
      if let unit = self[start].unit, self[at].unit == unit { continue }
      units.append(self[start..<at])
      start = at
    }
    if start < endIndex { units.append(self[start...]) }
    return units
  }
}
