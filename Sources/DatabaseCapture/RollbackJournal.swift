internal import SystemIO

/// Finds the pages with which a rollback journal undoes an interrupted transaction (fileformat2,
/// section 3; pager.c, pager_playback).
///
/// A journal has segments, each with a header that fills a sector, and with records of one page
/// each. An overwritten or truncated header ends the journal, and so does an incomplete record.
package struct RollbackJournal: LogParser {
  package private(set) var next: Range<UInt64>?
  private let size: UInt64
  private let ownPageSize: Int
  /// The part in the requested range.
  private var part = Part.firstHeader
  private var header: Header?
  /// The offset at which the next part is expected.
  private var at: UInt64 = 0
  /// The number of remaining records in the segment.
  private var remaining: UInt64 = 0
  private var nonce: UInt32 = 0
  private var pages = PageOverlay.Builder()

  private enum Part {
    case firstHeader
    case end
    case record
    case header
  }

  private struct Header {
    let sectorSize: UInt64
    let pageSize: Int
    let pageCount: UInt32
    /// The page that SQLite locks and never stores. Its number precedes a super-journal's name.
    var lockPage: UInt32 { UInt32(0x4000_0000 / pageSize) + 1 }
    var recordSize: UInt64 { UInt64(pageSize) + 8 }
  }

  static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
  static let headerLength = 28
  private static let headerSize = UInt64(headerLength)
  /// The minimum size of a journal in bytes: below it SQLite cannot know the sector size and finds
  /// no header.
  private static let smallestSize: UInt64 = 512

  /// Starts to read a journal of `size` bytes. `databasePageSize` is the page size in the
  /// database's header, for journals of very old versions, which do not record it.
  package init(size: UInt64, databasePageSize: Int? = nil) {
    self.size = min(size, UInt64(Int64.max))
    ownPageSize = databasePageSize ?? 4096
    if size >= Self.smallestSize { next = 0..<Self.headerSize }
  }

  package mutating func parse(_ bytes: Span<UInt8>) throws(LogRefusal) {
    guard let range = next else { return }
    next = nil
    guard bytes.count == range.count else { return }
    switch part {
    case .firstHeader: parseFirstHeader(bytes)
    case .end:
      if let name = SuperJournal.name(atEnd: bytes) { throw .severalDatabases(superJournal: name) }
      findRecord()
    case .record: parseRecord(bytes, at: range.lowerBound)
    case .header: if Self.hasMagic(bytes) { beginSegment(bytes) }
    }
  }

  package mutating func overlay() -> PageOverlay? {
    header.map { pages.finish(pageSize: $0.pageSize, pageCount: $0.pageCount) }
  }

  static func hasMagic(_ bytes: Span<UInt8>, at offset: Int = 0) -> Bool {
    magic.indices.allSatisfy { bytes[offset + $0] == magic[$0] }
  }

  private mutating func parseFirstHeader(_ bytes: Span<UInt8>) {
    let sectorSize = bytes.word(at: 20)
    let stored = bytes.word(at: 24)
    guard Self.hasMagic(bytes), (32...65_536).contains(sectorSize), sectorSize.nonzeroBitCount == 1,
      let pageSize = DatabaseUnit.pageSize(stored: stored == 0 ? UInt32(ownPageSize) : stored)
    else { return }
    header = Header(
      sectorSize: UInt64(sectorSize), pageSize: pageSize, pageCount: bytes.word(at: 16))
    beginSegment(bytes)
    // The end is read before any record, because it may refuse the journal.
    part = .end
    next = (size - min(size, SuperJournal.longestEnd))..<size
  }

  private mutating func beginSegment(_ bytes: Span<UInt8>) {
    guard let header else { return }
    nonce = bytes.word(at: 12)
    let count = bytes.word(at: 8)
    // The header of a journal that was not synced has no count: it has as many records as fit.
    remaining =
      count == .max ? (size - min(size, header.sectorSize)) / header.recordSize : UInt64(count)
    at += header.sectorSize
    findRecord()
  }

  /// Requests the next record or the next segment.
  private mutating func findRecord() {
    guard let header, at <= size else { return }
    if remaining > 0 {
      guard size - at >= header.recordSize else { return }
      (part, next) = (.record, at..<(at + header.recordSize))
    } else {
      at = (at + header.sectorSize - 1) / header.sectorSize * header.sectorSize
      guard at <= size, size - at >= header.sectorSize else { return }
      (part, next) = (.header, at..<(at + Self.headerSize))
    }
  }

  private mutating func parseRecord(_ bytes: Span<UInt8>, at start: UInt64) {
    guard let header else { return }
    let number = bytes.word(at: 0)
    guard number > 0, number != header.lockPage else { return }
    // Pages that the transaction added are truncated anyway.
    if number <= header.pageCount {
      let stored = bytes.word(at: 4 + header.pageSize)
      guard sum(bytes.extracting(4..<(4 + header.pageSize))) == stored else { return }
      pages.append(number, at: start + 4)
      pages.commit()
    }
    remaining -= 1
    at = start + header.recordSize
    findRecord()
  }

  /// Returns the checksum of a record: the nonce plus every 200th byte from the page's end, except
  /// the first byte.
  private func sum(_ page: Span<UInt8>) -> UInt32 {
    var sum = nonce
    for offset in stride(from: page.count - 200, to: 0, by: -200) { sum &+= UInt32(page[offset]) }
    return sum
  }
}

extension RollbackJournal {
  /// The state of a journal by the bytes of its header (pager.c, writeJournalHdr and
  /// zeroJournalHdr).
  enum Phase {
    /// It undoes the changes of a transaction.
    case live
    /// Its transaction has ended, or has not changed the database yet: it is empty (the mode
    /// TRUNCATE), or zeros replace the header (PERSIST), or the magic and the number of records.
    case idle

    /// Returns nil if the file is not a journal.
    init?(head: Span<UInt8>) {
      if head.isEmpty {
        self = .idle
        return
      }
      guard head.count >= headerLength else { return nil }
      if hasMagic(head) {
        self = .live
        return
      }
      guard (0..<12).allSatisfy({ head[$0] == 0 }) else { return nil }
      let (sector, page) = (head.word(at: 20), head.word(at: 24))
      let isErased = (12..<headerLength).allSatisfy { head[$0] == 0 }
      let isBegun =
        (32...65_536).contains(sector) && sector.nonzeroBitCount == 1
        && DatabaseUnit.pageSize(stored: page) != nil
      guard isErased || isBegun else { return nil }
      self = .idle
    }
  }

  /// The trailer of a journal for a transaction over several databases (pager.c,
  /// writeSuperJournal): the name of a file, its length, a checksum, and the magic again.
  enum SuperJournal {
    private static let longestName: UInt64 = 4096
    private static let trailer = 16
    /// The length of the lock page's number, which precedes the name.
    private static let marker = 4
    /// The maximum number of bytes that belong to it.
    static let longestEnd = longestName + UInt64(trailer)

    /// Returns the length of the record with a name.
    static func recordSize(name: ByteString) -> UInt64 { UInt64(marker + name.count + trailer) }

    /// Returns the file's name from the last bytes of a journal, or nil if there is none or if it
    /// was not completely written, in which case the transaction was certainly not committed.
    static func name(atEnd bytes: Span<UInt8>) -> ByteString? {
      let end = bytes.count - trailer
      guard end > 0, RollbackJournal.hasMagic(bytes, at: end + 8) else { return nil }
      let length = bytes.word(at: end)
      guard length > 0, length <= end else { return nil }
      let name = (end - Int(length))..<end
      let sum = bytes.word(at: end + 4)
      // The sum is over C chars, which are signed on some machines.
      var (plain, signed): (UInt32, UInt32) = (0, 0)
      for offset in name {
        plain &+= UInt32(bytes[offset])
        signed &+= UInt32(bitPattern: Int32(Int8(bitPattern: bytes[offset])))
      }
      guard sum == plain || sum == signed, bytes[name.lowerBound] != 0 else { return nil }
      return ByteString(name.map { bytes[$0] })
    }
  }
}
