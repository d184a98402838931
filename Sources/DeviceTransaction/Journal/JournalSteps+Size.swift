internal import Codecs

extension JournalSteps {
  /// Whether one journal can hold all steps, so that it can be read again. A journal is not
  /// divided: its steps are durable before the first of them is applied, and nothing is written
  /// between two steps (docs/journal.md).
  ///
  /// - Parameter limit: the maximum number of bytes.
  package func fitInJournal(of limit: Int = JournalRecord.stepsLimit) -> Bool {
    var (count, line): (Int, [UInt8]) = (0, [])
    for step in self {
      line.removeAll(keepingCapacity: true)
      step.json.write(to: &line)
      // The end of the line.
      count += line.count + 2
      if count > limit { return false }
    }
    return true
  }
}

extension JournalRecord {
  /// The maximum size of all steps in a journal, in bytes.
  package static let stepsLimit = limit - headReserve
}
