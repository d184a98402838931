/// Some entries of one directory, for one thread.
struct WorkItem: Sendable {
  let directory: EntryID
  /// Entries to read, in the order of their names.
  let entries: [Int32]
  /// Whether the directory itself is dealt with: one of its units does that.
  let isVisit: Bool
  /// Whether it was put off: it is read now in any case.
  var isLate = false

  /// A file of so many bytes is a unit by itself: its frames keep all threads busy.
  static let largeFile: UInt64 = 4 << 20
  /// No unit has more entries: about a millisecond of reading, so that taking one costs nothing in
  /// comparison and no thread waits long for the last.
  static let entryLimit = 128
}
