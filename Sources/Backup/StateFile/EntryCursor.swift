internal import Codecs
internal import SystemIO

/// A cursor over the entries of a directory, page by page.
///
/// A damaged page ends it: the entries that would follow are unknown.
struct EntryCursor {
  private var page: EntryPage?
  private var place = 0
  private var pages: ArraySlice<RecordPointer> = []
  private var file: RecordFile?
  private var isOfInterruptedRun = false

  /// Creates a cursor over no entries.
  init() {}

  /// Creates a cursor over a directory's record.
  init(_ record: DirectoryContents, _ file: RecordFile) {
    self.file = file
    if record.isPaged {
      pages = record.pages[...]
    } else {
      open(EntryPage(record.bytes, from: DirectoryLayout.header))
    }
  }

  /// Creates a cursor over the entries that an interrupted run recorded.
  init(interrupted page: EntryPage) {
    isOfInterruptedRun = true
    open(page)
  }

  private mutating func open(_ page: EntryPage?) {
    self.page = page
    place = page?.start ?? 0
  }

  /// Returns the next entry without consuming it.
  private mutating func peek() -> KnownEntry? {
    while true {
      if let page, place < page.bytes.count {
        return KnownEntry(page.bytes, at: place, isOfInterruptedRun: isOfInterruptedRun)
      }
      guard let next = pages.popFirst(), let bytes = file?.read(next),
        let page = EntryPage(bytes, from: 0)
      else {
        pages = []
        page = nil
        return nil
      }
      open(page)
    }
  }

  /// Returns the next entry, or nil at the end.
  mutating func next() -> KnownEntry? {
    let entry = peek()
    if let entry { place = entry.end }
    return entry
  }

  /// Returns the entry with a name, or nil if there is none; consumes all entries before it.
  mutating func find(_ name: Span<UInt8>) -> KnownEntry? {
    while let entry = peek() {
      let order = entry.order(name)
      if order > 0 { return nil }
      place = entry.end
      if order == 0 { return entry }
    }
    return nil
  }
}
