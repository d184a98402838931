/// The entries of one directory that one thread reads together.
struct WorkItem: Sendable {
  let directory: EntryID
  /// Entries to read, in the order of their names.
  let entries: [Int32]
  /// Whether the directory itself is processed: one of its work items does that.
  let isVisit: Bool
  /// Whether the item was deferred. It must be read now.
  var isLate = false

  /// The maximum size of an item's files in bytes. A larger file is an item by itself: its frames
  /// keep all threads busy.
  static let largeFile: UInt64 = 4 << 20
  /// The maximum number of entries: about a millisecond of reading, so that the cost of taking an
  /// item is negligible and no thread waits long for the last one.
  static let entryLimit = 128
}
