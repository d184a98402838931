internal import Codecs
internal import SystemIO

/// A way through the entries of a directory, page by page.
///
/// A page that is damaged ends it: what would have come is not known.
struct EntryCursor {
  private var page: EntryPage?
  private var place = 0
  private var pages: ArraySlice<RecordPointer> = []
  private var file: RecordFile?
  private var isOfInterruptedRun = false

  /// A way through nothing.
  init() {}

  /// A way through a directory's record.
  init(_ record: DirectoryContents, _ file: RecordFile) {
    self.file = file
    if record.isPaged {
      pages = record.pages[...]
    } else {
      open(EntryPage(record.bytes, from: DirectoryLayout.header))
    }
  }

  /// A way through what an interrupted run noted.
  init(interrupted page: EntryPage) {
    isOfInterruptedRun = true
    open(page)
  }

  private mutating func open(_ page: EntryPage?) {
    self.page = page
    place = page?.start ?? 0
  }

  /// The next entry; it stays the next one.
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

  /// The next entry.
  mutating func next() -> KnownEntry? {
    let entry = peek()
    if let entry { place = entry.end }
    return entry
  }

  /// The entry of a name; passes all that come before it.
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
