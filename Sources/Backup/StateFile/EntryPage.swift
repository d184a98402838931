internal import Codecs
internal import SystemIO

/// Consecutive entries in the order of their names' bytes.
///
/// All of them are checked once, so that access to one needs no further checks.
struct EntryPage: Sendable {
  /// The bytes; those before `start` belong to the record.
  let bytes: [UInt8]
  let start: Int
  let count: Int

  /// The size in bytes at which a page is closed.
  static let size = 256 << 10
  /// The maximum size of an entry in bytes. Longer entries are not recorded and are read in each
  /// run.
  static let entryLimit = 1 << 20

  /// Reads the entries from an offset on; returns nil if they are incomplete or out of order.
  init?(_ bytes: [UInt8], from start: Int) {
    self.bytes = bytes
    self.start = start
    var (offset, last, count) = (start, Range<Int>?.none, 0)
    let span = bytes.span
    while offset < span.count {
      guard let name = Self.name(of: span, at: offset) else { return nil }
      if let last, !Self.isAscending(in: span, from: last, to: name) { return nil }
      offset += Int(LittleEndian.integer(span, at: offset, as: UInt32.self))
      last = name
      count += 1
    }
    self.count = count
  }

  /// Returns the range of the name of a complete and valid entry, or nil if there is none.
  private static func name(of bytes: Span<UInt8>, at offset: Int) -> Range<Int>? {
    guard bytes.count - offset >= KnownEntry.Layout.name else { return nil }
    let length = Int(LittleEndian.integer(bytes, at: offset, as: UInt32.self))
    let name = Int(
      LittleEndian.integer(bytes, at: offset + KnownEntry.Layout.nameLength, as: UInt16.self))
    let flags = KnownEntry.Flags(rawValue: bytes[offset + KnownEntry.Layout.flags])
    let fixed =
      KnownEntry.Layout.name + name + (flags.contains(.hasRecord) ? RecordPointer.size : 0)
    guard length >= fixed, length <= bytes.count - offset,
      KnownEntry.Flags.all.isSuperset(of: flags),
      FileKind(rawValue: bytes[offset + KnownEntry.Layout.kind]) != nil
    else { return nil }
    let start = offset + KnownEntry.Layout.name
    return start..<(start + name)
  }

  private static func isAscending(
    in bytes: Span<UInt8>, from first: Range<Int>, to second: Range<Int>
  ) -> Bool {
    for index in 0..<min(first.count, second.count) {
      let (left, right) = (bytes[first.lowerBound + index], bytes[second.lowerBound + index])
      if left != right { return left < right }
    }
    return first.count < second.count
  }
}

extension EntryPage {
  /// A cursor over the entries of a directory, page by page.
  ///
  /// A damaged page ends it: the entries that would follow are unknown.
  struct Cursor {
    private var page: EntryPage?
    private var offset = 0
    private var pages: ArraySlice<RecordPointer> = []
    private var file: RecordFile?
    private var isOfInterruptedRun = false

    /// Creates a cursor over no entries.
    init() {}

    /// Creates a cursor over a directory's record.
    init(_ record: DirectoryRecord.Contents, _ file: RecordFile) {
      self.file = file
      if record.isPaged {
        pages = record.pages[...]
      } else {
        open(EntryPage(record.bytes, from: DirectoryRecord.Layout.header))
      }
    }

    /// Creates a cursor over the entries that an interrupted run recorded.
    init(interrupted page: EntryPage) {
      isOfInterruptedRun = true
      open(page)
    }

    private mutating func open(_ page: EntryPage?) {
      self.page = page
      offset = page?.start ?? 0
    }

    /// Returns the next entry without consuming it.
    private mutating func peek() -> KnownEntry? {
      while true {
        if let page, offset < page.bytes.count {
          return KnownEntry(page.bytes, at: offset, isOfInterruptedRun: isOfInterruptedRun)
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
      if let entry { offset = entry.end }
      return entry
    }

    /// Returns the entry with a name, or nil if there is none; consumes all entries before it.
    mutating func find(_ name: Span<UInt8>) -> KnownEntry? {
      while let entry = peek() {
        let order = entry.order(name)
        if order > 0 { return nil }
        offset = entry.end
        if order == 0 { return entry }
      }
      return nil
    }
  }
}
